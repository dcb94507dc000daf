import type { Share, ShareKind } from '@palestra/protocol';
import type pg from 'pg';
import type { ShareLinkModel } from '../platform/generated/prisma/models.ts';

/** Names of the runs that exist, by id. Plan: the primary key of runs. */
export async function selectRunNames(pool: pg.Pool, orgId: string, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await pool.query<{ id: string; name: string }>(
    'SELECT id, name FROM runs WHERE org_id = $1 AND id = ANY($2::uuid[]) AND deleted_at IS NULL',
    [orgId, ids],
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** Whether every one of these rollouts exists, in a run that exists. Plan: Index Scan using rollout_heads_org_id_id_key. */
export async function haveRollouts(pool: pg.Pool, orgId: string, ids: readonly string[]): Promise<boolean> {
  if (ids.length === 0) return true;
  const { rowCount } = await pool.query(
    `SELECT FROM rollout_heads h JOIN runs r ON r.seq = h.run_seq
     WHERE h.org_id = $1 AND h.id = ANY($2::uuid[]) AND r.org_id = $1 AND r.deleted_at IS NULL`,
    [orgId, ids],
  );
  return rowCount === ids.length;
}

/** What a link shows; null when one of its runs was deleted. */
export function presentScope(row: ShareLinkModel, org: string, names: ReadonlyMap<string, string>) {
  const runs = row.runIds.flatMap((id) => (names.has(id) ? [{ id, name: names.get(id)! }] : []));
  if (runs.length < row.runIds.length) return null;
  const scope = {
    kind: row.kind as ShareKind,
    rollouts: row.rolloutIds,
    runs,
    q: row.query,
    with_rollouts: row.withRollouts,
    message: row.messageIndex,
    expires_at: row.expiresAt.toISOString(),
  };
  return { ...scope, path: pathOf(scope, org) };
}

/** Address of the page for members and guests: router.tsx of the dashboard. */
function pathOf({ kind, rollouts, runs, q, message }: Omit<Share, 'id' | 'author' | 'created_at' | 'path'>, org: string): string {
  const of = encodeURIComponent(org);
  switch (kind) {
    case 'rollout':
      return `/rollout/${rollouts[0]}${message === null ? '' : `#m-${message}`}`;
    case 'rollouts':
      return `/compare?org=${of}&rollouts=${rollouts.join(',')}`;
    case 'runs':
      return `/compare?org=${of}&runs=${runs.map(({ id }) => id).join(',')}`;
    case 'run':
      return `/${of}/runs/${segmentOf(runs[0]!)}`;
    case 'query':
      return `/${of}/runs/${segmentOf(runs[0]!)}/rollouts${q === '' ? '' : `?q=${encodeURIComponent(q!)}`}`;
  }
}

/** Browsers resolve `.` and `..`. */
const segmentOf = ({ id, name }: { id: string; name: string }): string => (/^~*\.{1,2}$/.test(name) ? id : encodeURIComponent(name));
