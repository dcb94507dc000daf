import { hostingSettingsSchema } from '@palestra/protocol/schemas';
import type pg from 'pg';
import { retryDatabase } from '../../../platform/database/database-retry.ts';
import { CRASH_WINDOW_MS, TURN_MS } from './decide.ts';

type Queryable = Pick<pg.Pool, 'query'>;

export interface InstanceStatus {
  id: string;
  state: 'starting' | 'ready' | 'draining' | 'failed' | 'stopped';
  endpoint: string | null;
  detail: string | null;
  /** Its engine has nothing of it any more. */
  stopped: boolean;
}

/** Index Scan using environment_instances_pkey. */
export async function selectStatuses(pool: Queryable, ids: readonly string[]): Promise<InstanceStatus[]> {
  const text =
    'SELECT id, state, endpoint, detail, stopped_at IS NOT NULL AS stopped FROM environment_instances WHERE id = ANY($1::uuid[])';
  return retryDatabase(async () => (await pool.query<InstanceStatus>({ name: 'instance_statuses', text, values: [ids] })).rows);
}

/** A ready instance of the version; null if it has none. Plan: environment_instances_version_id_idx. */
export async function selectReady(pool: Queryable, versionId: string): Promise<{ id: string; endpoint: string } | null> {
  const text = `SELECT id, endpoint FROM environment_instances
    WHERE version_id = $1 AND stopped_at IS NULL AND state = 'ready' AND endpoint IS NOT NULL ORDER BY created_at, id LIMIT 1`;
  const { rows } = await retryDatabase(() =>
    pool.query<{ id: string; endpoint: string }>({ name: 'instance_any_ready', text, values: [versionId] }),
  );
  return rows[0] ?? null;
}

/** Why a version has no ready instance. */
export interface StartFacts {
  /** Instances that start or are ready, and of them the ready ones. */
  serving: number;
  ready: number;
  /** Of the last ten minutes, since one last answered. */
  unready: number;
  /** How the last one ended; null if none failed. */
  detail: string | null;
  /** Instances of its organisation. */
  of_org: number;
  /** Seconds since a process last ran instances; null: never. */
  reconciled_s: number | null;
  /** Seconds since the version's engine last answered, and why it does not; null while it does. */
  engine: { silent_s: number; detail: string } | null;
}

const START_TIMEOUT_S = hostingSettingsSchema.parse({}).start_timeout_s;

const FACTS = `
  WITH failed AS (
    SELECT created_at, ready_at, detail, stopped_at, true AS is_over FROM environment_instances
    WHERE version_id = $1 AND state = 'failed' AND stopped_at > now() - ${CRASH_WINDOW_MS} * interval '1 ms'
    -- When one has failed that cannot be removed is not stored: at the end of its time for a start, at the latest.
    UNION ALL SELECT i.created_at, i.ready_at, i.detail, now(), false FROM environment_instances AS i JOIN environments AS n ON n.id = i.environment_id
    WHERE i.version_id = $1 AND i.state = 'failed' AND i.stopped_at IS NULL AND (i.ready_at IS NOT NULL OR i.created_at > now()
      - coalesce((n.hosting ->> 'start_timeout_s')::int, ${START_TIMEOUT_S}) * interval '1 s' - ${CRASH_WINDOW_MS + TURN_MS} * interval '1 ms')),
  living AS (SELECT * FROM environment_instances WHERE version_id = $1 AND stopped_at IS NULL),
  answered AS (SELECT max(ready_at) AS at FROM (SELECT ready_at FROM failed UNION ALL SELECT ready_at FROM living) AS r)
  SELECT
    (SELECT count(*) FROM living WHERE state IN ('starting', 'ready'))::int AS serving,
    (SELECT count(*) FROM living WHERE state = 'ready')::int AS ready,
    (SELECT count(*) FROM failed, answered WHERE ready_at IS NULL AND created_at > coalesce(at, '-infinity'))::int AS unready,
    -- The last lines of its log are there when it is over.
    (SELECT detail FROM failed ORDER BY is_over DESC, stopped_at DESC LIMIT 1) AS detail,
    (SELECT count(*) FROM environment_instances AS i WHERE i.stopped_at IS NULL AND i.org_id = e.org_id)::int AS of_org,
    (SELECT extract(epoch FROM now() - max(seen_at)) FROM hosting_engines)::float8 AS reconciled_s,
    (SELECT jsonb_build_object('silent_s', extract(epoch FROM now() - seen_at), 'detail', detail)
     FROM hosting_engines WHERE name = v.provider AND detail IS NOT NULL) AS engine
  FROM environment_versions AS v JOIN environments AS e ON e.id = v.environment_id WHERE v.id = $1`;

/** Null when the version was deleted. */
export async function selectStartFacts(pool: Queryable, versionId: string): Promise<StartFacts | null> {
  const { rows } = await retryDatabase(() => pool.query<StartFacts>({ name: 'instance_start_facts', text: FACTS, values: [versionId] }));
  return rows[0] ?? null;
}
