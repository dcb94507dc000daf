import type pg from 'pg';
import type { AuditEntry, RequestSource } from './audit-entry.ts';

/** The actor. The row keeps the names of users and keys of the time when it is written. */
export interface Actor {
  orgId: string | null;
  userId: string | null;
  keyId: string | null;
}

export interface AuditRow {
  id: string;
  at: Date;
  action: string;
  refused: boolean;
  actor_id: string | null;
  actor: string | null;
  key_id: string | null;
  key_name: string | null;
  target_id: string | null;
  target: string | null;
  details: Record<string, unknown>;
  address: string;
  user_agent: string;
}

export interface AuditFilter {
  orgId: string;
  /** Includes events without an organisation. */
  operator: boolean;
  /** An action, or a group of them: `key` has `key.create` and `key.revoke`. */
  action: string | null;
  /** Id or name of a user. */
  actor: string | null;
  since: string | null;
  until: string | null;
}

const MAX_TEXT = 500;
/** PostgreSQL cannot store a NUL, and the size of a row must be limited. */
const shorten = (text: string | null | undefined): string | null => text?.replaceAll('\0', '').slice(0, MAX_TEXT) ?? null;

export const INSERT_AUDIT = `INSERT INTO audit_log (at, org_id, actor_id, actor, key_id, key_name, action, refused, target_id, target, details, address, user_agent)
  VALUES (clock_timestamp(), $1::uuid, $2::uuid, (SELECT name FROM users WHERE id = $2::uuid), $3::uuid, (SELECT name FROM api_keys WHERE id = $3::uuid),
    $4, $5, $6, $7, $8::jsonb, $9, $10)`;

/** The parameters of INSERT_AUDIT. */
export function auditValues({ orgId, userId, keyId }: Actor, entry: AuditEntry & { refused?: boolean }, source: RequestSource | null) {
  const { action, refused = false, targetId, target, details = {} } = entry;
  const json = JSON.stringify(details).replaceAll(String.raw`\u0000`, '');
  const from = [shorten(source?.address) ?? '', shorten(source?.userAgent) ?? ''];
  return [orgId, userId, keyId, action, refused, shorten(targetId), shorten(target), json, ...from];
}

/**
 * Events before (or, ascending, after) an id. Plan: audit_log_org_id_id_idx backwards; with a filter the index of action or actor, or the
 * first one with a condition.
 */
export async function selectAuditRows(
  pool: pg.Pool,
  { orgId, operator, action, actor, since, until }: AuditFilter,
  page: { from: string | null; limit: number; ascending?: boolean },
): Promise<AuditRow[]> {
  const { rows } = await pool.query<AuditRow>(
    `SELECT id::text, at, action, refused, actor_id, actor, key_id, key_name, target_id, target, details, address, user_agent FROM audit_log
     WHERE (org_id = $1 ${operator ? 'OR org_id IS NULL' : ''})
       AND ($2::text IS NULL OR action = $2 OR starts_with(action, $2 || '.'))
       AND ($3::text IS NULL OR actor = $3 OR actor_id::text = lower($3))
       AND ($4::timestamptz IS NULL OR at >= $4) AND ($5::timestamptz IS NULL OR at < $5)
       AND ($6::bigint IS NULL OR audit_log.id ${page.ascending ? '>' : '<'} $6)
     ORDER BY audit_log.id ${page.ascending ? 'ASC' : 'DESC'} LIMIT $7`,
    [orgId, action, actor, since, until, page.from, page.limit],
  );
  return rows;
}
