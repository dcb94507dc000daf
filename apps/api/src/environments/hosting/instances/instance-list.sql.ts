import type pg from 'pg';
import { WAITING } from './instance.sql.ts';

export interface ListedInstance {
  id: string;
  version: number | null;
  provider: string;
  state: 'starting' | 'ready' | 'draining' | 'failed' | 'stopped';
  detail: string | null;
  restarts: number;
  stats: { cpus: number; memory_mb: number } | null;
  sessions: number;
  created_at: Date;
  ready_at: Date | null;
  stopped_at: Date | null;
}

/** Ended instances that a page shows. */
const MOST_ENDED = 50;

/**
 * Living instances of an environment, then the last ended ones. Plans: environment_instances_environment_id_created_at_idx, and per instance
 * sessions_instance_id_idx.
 */
const LIST = `
  WITH listed AS (
    (SELECT * FROM environment_instances WHERE environment_id = $1 AND stopped_at IS NULL ORDER BY created_at DESC LIMIT $2)
    UNION ALL
    (SELECT * FROM environment_instances WHERE environment_id = $1 AND stopped_at IS NOT NULL ORDER BY created_at DESC LIMIT ${MOST_ENDED}))
  SELECT l.id, v.number AS version, l.provider, l.state, l.detail, l.restarts, l.stats, l.created_at, l.ready_at, l.stopped_at,
    (SELECT count(*) FROM sessions AS s WHERE s.instance_id = l.id AND s.ended_at IS NULL)::int AS sessions
  FROM listed AS l LEFT JOIN environment_versions AS v ON v.id = l.version_id
  ORDER BY l.stopped_at IS NOT NULL, l.created_at DESC, l.id`;

/** `limit`: of living ones. */
export async function listInstances(pool: pg.Pool, environmentId: string, limit: number): Promise<ListedInstance[]> {
  return (await pool.query<ListedInstance>(LIST, [environmentId, limit])).rows;
}

/**
 * Sessions of an environment that wait for a place, and the median wait of those that got one within the last hour, milliseconds. Plans:
 * sessions_waiting_idx, sessions_instance_id_idx; per version sessions_slots_idx and sessions_hosted_ended_idx.
 */
const QUEUE = `
  WITH versions AS (SELECT id::text AS id FROM environment_versions WHERE environment_id = $1),
  placed AS (
    SELECT queued_at, admitted_at FROM sessions
    WHERE version_id IN (SELECT id FROM versions) AND ended_at IS NULL AND admitted_at > now() - interval '1 hour'
    UNION ALL
    SELECT queued_at, admitted_at FROM sessions
    WHERE version_id IN (SELECT id FROM versions) AND instance_id IS NOT NULL AND ended_at > now() - interval '1 hour')
  SELECT
    (SELECT count(*) FROM sessions WHERE waiting_on IS NOT NULL AND ended_at IS NULL AND version_id IN (SELECT id FROM versions))::int
      + (SELECT count(*) FROM sessions WHERE instance_id = '${WAITING}' AND ended_at IS NULL AND version_id IN (SELECT id FROM versions))::int AS waiting,
    (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM admitted_at - queued_at) * 1000)
     FROM placed WHERE admitted_at > now() - interval '1 hour' AND queued_at IS NOT NULL)::float8 AS queue_ms`;

export async function selectQueue(pool: pg.Pool, environmentId: string): Promise<{ waiting: number; queue_ms: number | null }> {
  return (await pool.query<{ waiting: number; queue_ms: number | null }>(QUEUE, [environmentId])).rows[0]!;
}

/** The version of an instance of the environment; null without that instance. */
export async function selectInstance(
  pool: Pick<pg.Pool, 'query'>,
  environmentId: string,
  id: string,
): Promise<{ version_id: string; state: ListedInstance['state'] } | null> {
  const text = 'SELECT version_id, state FROM environment_instances WHERE id = $2 AND environment_id = $1';
  return (await pool.query<{ version_id: string; state: ListedInstance['state'] }>(text, [environmentId, id])).rows[0] ?? null;
}

/** Instances of the environment that take sessions, or will. */
export async function selectServing(pool: Pick<pg.Pool, 'query'>, environmentId: string): Promise<{ id: string; version_id: string }[]> {
  const text = `SELECT id, version_id FROM environment_instances
    WHERE environment_id = $1 AND stopped_at IS NULL AND state IN ('starting', 'ready')`;
  return (await pool.query<{ id: string; version_id: string }>(text, [environmentId])).rows;
}

/** Failed instances of the version count no longer, so that others start at once. */
export async function forgiveCrashes(pool: Pick<pg.Pool, 'query'>, versionId: string): Promise<void> {
  await pool.query(
    `UPDATE environment_instances SET state = 'stopped'
     WHERE version_id = $1 AND state = 'failed' AND (stopped_at IS NULL OR stopped_at > now() - interval '10 minutes')`,
    [versionId],
  );
}
