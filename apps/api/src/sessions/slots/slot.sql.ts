import type { SessionState } from '@palestra/protocol';
import type pg from 'pg';
import type { SessionRowRecord } from '../views/session-list.sql.ts';

/** An environment version with its slots. */
export interface SlotGroupRecord {
  version_id: string;
  environment: string;
  number: number | null;
  managed: boolean;
  used: number;
  own: number;
  waiting: number;
}

/**
 * The versions on which the organisation has live sessions, and those that it manages and on which anyone has. Plans: sessions_live_idx for its
 * own sessions; sessions_slots_idx and sessions_waiting_idx by version for all. They read only live sessions.
 */
const GROUPS = `
  WITH own AS (
    SELECT version_id, min(environment) AS environment FROM sessions
    WHERE ended_at IS NULL AND org_id = $1 AND version_id IS NOT NULL GROUP BY version_id),
  managed AS (
    SELECT v.id::text AS version_id FROM environments AS e JOIN environment_versions AS v ON v.environment_id = e.id
    WHERE e.org_id = $1::uuid),
  waiting AS (SELECT version_id, count(*)::int AS count FROM sessions WHERE waiting_on IS NOT NULL GROUP BY version_id),
  asked AS (
    SELECT version_id FROM own
    UNION SELECT version_id FROM managed
    UNION SELECT unnest($2::text[]))
  SELECT a.version_id, coalesce(e.owner || '/' || e.name, own.environment) AS environment, v.number,
    m.version_id IS NOT NULL AS managed, held.used, held.own, coalesce(w.count, 0) AS waiting
  FROM asked AS a
  LEFT JOIN environment_versions AS v ON v.id = a.version_id::uuid
  LEFT JOIN environments AS e ON e.id = v.environment_id
  LEFT JOIN own ON own.version_id = a.version_id
  LEFT JOIN managed AS m ON m.version_id = a.version_id
  LEFT JOIN waiting AS w ON w.version_id = a.version_id
  CROSS JOIN LATERAL (
    SELECT count(*)::int AS used, (count(*) FILTER (WHERE org_id = $1))::int AS own
    FROM sessions WHERE ended_at IS NULL AND admitted_at IS NOT NULL AND version_id = a.version_id) AS held
  WHERE (own.version_id IS NOT NULL OR held.used > 0 OR w.count > 0 OR a.version_id = ANY($2::text[]))
    AND ($3::text IS NULL OR e.owner || '/' || e.name = $3)
  ORDER BY environment, number DESC NULLS LAST`;

/** Includes the versions of `versionIds` also when no session uses them. */
export async function selectSlotGroups(
  pool: pg.Pool,
  orgId: string,
  versionIds: string[],
  environment: string | null,
): Promise<SlotGroupRecord[]> {
  return (await pool.query<SlotGroupRecord>(GROUPS, [orgId, versionIds, environment])).rows;
}

export interface SlotHolderRecord extends Pick<
  SessionRowRecord,
  | 'user_name'
  | 'key_id'
  | 'key_name'
  | 'key_prefix'
  | 'last_tool'
  | 'last_state'
  | 'last_class'
  | 'last_started_at'
  | 'recording'
  | 'owner_replica_id'
  | 'created_at'
  | 'last_seen_at'
  | 'waiting'
> {
  sid: string;
  version_id: string;
  state: SessionState;
  /** JSON text */
  task: string | null;
  org_id: string;
  org_name: string | null;
}

/** Per version at most `$4` own sessions, and if it is managed at most `$4` of others, by sessions_live_idx; names by primary keys. */
const HOLDERS = `
  SELECT s.sid, s.version_id, s.state, s.task, s.org_id, o.name AS org_name, u.name AS user_name, s.key_id, k.name AS key_name, k.prefix AS key_prefix,
    s.owner_replica_id, s.created_at, s.last_seen_at, s.waiting_on IS NOT NULL AS waiting, s.recording,
    l.tool AS last_tool, l.state AS last_state, l.failure_class AS last_class, l.started_at AS last_started_at
  FROM unnest($2::text[], $3::bool[]) AS a(version_id, managed)
  CROSS JOIN LATERAL (
    (SELECT * FROM sessions WHERE ended_at IS NULL AND org_id = $1 AND version_id = a.version_id ORDER BY created_at LIMIT $4)
    UNION ALL
    (SELECT * FROM sessions WHERE a.managed AND ended_at IS NULL AND (admitted_at IS NOT NULL OR waiting_on IS NOT NULL)
       AND version_id = a.version_id AND org_id <> $1 ORDER BY created_at LIMIT $4)
  ) AS s
  LEFT JOIN organisations AS o ON o.id = s.org_id::uuid
  LEFT JOIN users AS u ON u.id = s.user_id::uuid
  LEFT JOIN api_keys AS k ON k.id = s.key_id::uuid
  LEFT JOIN LATERAL (
    SELECT tool, state, failure_class, started_at FROM session_calls WHERE sid = s.sid ORDER BY seq DESC LIMIT 1
  ) AS l ON true
  ORDER BY s.created_at, s.sid`;

export async function selectSlotHolders(
  pool: pg.Pool,
  orgId: string,
  groups: SlotGroupRecord[],
  limit: number,
): Promise<SlotHolderRecord[]> {
  const versionIds = groups.map((group) => group.version_id);
  const managed = groups.map((group) => group.managed);
  return (await pool.query<SlotHolderRecord>(HOLDERS, [orgId, versionIds, managed, limit])).rows;
}

/** How many processes open new sessions. Each runs the bundled environments once. */
export async function countReplicas(pool: pg.Pool, leaseMs: number): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM session_replicas WHERE NOT draining AND seen_at > now() - $1 * interval '1 ms'`,
    [leaseMs],
  );
  return rows[0]!.count;
}
