import type pg from 'pg';

type Queryable = Pick<pg.Pool, 'query'>;

/** `sessions.instance_id` of a session that waits for an instance. */
export const WAITING = '00000000-0000-0000-0000-000000000000';
/** Class of the advisory locks under which sessions of a version are placed and its instances begin to drain. */
export const PLACEMENT_LOCK = 1_883_457;

/** States of instances that take sessions, or will. */
const SERVING = `state IN ('starting', 'ready')`;

export interface StoredInstance {
  id: string;
  environment_id: string;
  version_id: string;
  org_id: string;
  provider: string;
  state: 'starting' | 'ready' | 'draining' | 'failed' | 'stopped';
  endpoint: string | null;
  detail: string | null;
  restarts: number;
  /** Milliseconds. */
  created_at: number;
  ready_at: number | null;
  draining_at: number | null;
  sessions: number;
  /** Sessions that it may still get; null: any number. */
  sessions_left: number | null;
}

const MS = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8 AS ${column}`;

/**
 * Every instance whose engine may still have something of it. Plans: environment_instances_version_id_idx, and sessions_instance_id_idx, which
 * have only what lives.
 */
const LIVING = `
  SELECT i.id, i.environment_id, i.version_id, i.org_id, i.provider, i.state, i.endpoint, i.detail, i.restarts, i.sessions_left,
    ${MS('created_at')}, ${MS('ready_at')}, ${MS('draining_at')}, coalesce(s.count, 0)::int AS sessions
  FROM environment_instances AS i
  LEFT JOIN (
    SELECT instance_id, count(*) AS count FROM sessions WHERE instance_id IS NOT NULL AND ended_at IS NULL GROUP BY 1) AS s ON s.instance_id = i.id
  WHERE i.stopped_at IS NULL`;

export async function selectLiving(pool: Queryable): Promise<StoredInstance[]> {
  return (await pool.query<StoredInstance>({ name: 'instances_living', text: LIVING })).rows;
}

export interface StoredCrash {
  id: string;
  version_id: string;
  created_at: number;
  ready_at: number | null;
  /** Null while its engine may still have something of it. */
  ended_at: number | null;
}
export type Crash = StoredCrash & { ended_at: number };

/** Instances that failed within the last `windowMs`. Plan: environment_instances_failed_idx; those that are not removed, by their version. */
const CRASHES = `
  SELECT id, version_id, ${MS('created_at')}, ${MS('ready_at')}, (extract(epoch FROM stopped_at) * 1000)::float8 AS ended_at
  FROM environment_instances WHERE state = 'failed' AND stopped_at > now() - $1 * interval '1 ms'
  UNION ALL
  SELECT id, version_id, ${MS('created_at')}, ${MS('ready_at')}, NULL AS ended_at
  FROM environment_instances WHERE state = 'failed' AND stopped_at IS NULL`;

export async function selectCrashes(pool: Queryable, windowMs: number): Promise<StoredCrash[]> {
  return (await pool.query<StoredCrash>({ name: 'instances_crashes', text: CRASHES, values: [windowMs] })).rows;
}

export interface StoredDemand {
  id: string;
  environment_id: string;
  org_id: string;
  provider: string | null;
  /** Of its artifact; null before it is built. */
  kind: string | null;
  /** How many servers its author runs; null: instances run here. */
  urls: number | null;
  /** null: its environment has no settings. */
  settings: { min_warm: number; max: number; concurrency: number; idle_s: number; drain_s: number; start_timeout_s: number } | null;
  /** A channel points at it. */
  served: boolean;
  /** A deploy tests it. */
  tested: boolean;
  waiting: number;
}

/**
 * Versions that have instances, or sessions that wait for some, or warm ones of a channel. Plans: sessions_instance_id_idx and
 * sessions_waiting_idx, which have only sessions that wait; environment_instances_version_id_idx; channels by their primary key.
 */
const DEMAND = `
  WITH waiting AS (
    SELECT version_id, sum(count)::int AS count FROM (
      SELECT version_id, count(*) AS count FROM sessions WHERE instance_id = '${WAITING}' AND ended_at IS NULL GROUP BY 1
      UNION ALL
      SELECT version_id, count(*) AS count FROM sessions WHERE waiting_on IS NOT NULL AND ended_at IS NULL GROUP BY 1) AS w
    WHERE version_id IS NOT NULL GROUP BY 1),
  served AS (
    SELECT version_id FROM environment_channels
    UNION SELECT canary_version_id FROM environment_channels WHERE canary_version_id IS NOT NULL),
  asked AS (
    SELECT version_id::uuid AS id FROM waiting
    UNION SELECT version_id FROM environment_instances WHERE stopped_at IS NULL
    UNION SELECT s.version_id FROM served AS s JOIN environment_versions AS v ON v.id = s.version_id JOIN environments AS e ON e.id = v.environment_id
      WHERE v.source_kind = 'hosted' AND ((e.hosting ->> 'min_warm')::int > 0 OR v.artifact ->> 'kind' = 'urls'))
  SELECT v.id, v.environment_id, e.org_id, v.provider, v.artifact ->> 'kind' AS kind,
    CASE WHEN v.artifact ->> 'kind' = 'urls' THEN jsonb_array_length(v.artifact -> 'urls') END AS urls,
    CASE WHEN e.hosting IS NOT NULL THEN jsonb_build_object('min_warm', e.hosting -> 'min_warm', 'max', e.hosting -> 'max',
      'concurrency', e.hosting -> 'concurrency', 'idle_s', e.hosting -> 'idle_s', 'drain_s', e.hosting -> 'drain_s',
      'start_timeout_s', e.hosting -> 'start_timeout_s') END AS settings,
    EXISTS (SELECT FROM served AS s WHERE s.version_id = v.id) AS served,
    EXISTS (SELECT FROM environment_deploys AS d WHERE d.id = v.deploy_id AND d.state IN ('building', 'verifying')) AS tested,
    coalesce(w.count, 0) AS waiting
  FROM asked AS a JOIN environment_versions AS v ON v.id = a.id JOIN environments AS e ON e.id = v.environment_id
  LEFT JOIN waiting AS w ON w.version_id = v.id::text
  WHERE v.source_kind = 'hosted' AND e.org_id IS NOT NULL`;

export async function selectDemand(pool: Queryable): Promise<StoredDemand[]> {
  return (await pool.query<StoredDemand>({ name: 'instances_demand', text: DEMAND })).rows;
}

export interface NewInstance {
  id: string;
  environmentId: string;
  versionId: string;
  orgId: string;
  provider: string;
  restarts: number;
}

const INSERT = `
  INSERT INTO environment_instances (id, environment_id, version_id, org_id, provider, state, restarts)
  SELECT n.id::uuid, n.environment_id::uuid, n.version_id::uuid, n.org_id::uuid, n.provider, 'starting', n.restarts
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[]) AS n(id, environment_id, version_id, org_id, provider, restarts)`;

export async function insertInstances(pool: Queryable, added: readonly NewInstance[]): Promise<void> {
  if (added.length === 0) return;
  await pool.query(INSERT, [
    added.map(({ id }) => id),
    added.map(({ environmentId }) => environmentId),
    added.map(({ versionId }) => versionId),
    added.map(({ orgId }) => orgId),
    added.map(({ provider }) => provider),
    added.map(({ restarts }) => restarts),
  ]);
}

/**
 * Adds an instance that starts, unless the version has one that serves or will. `alone`: only then. Null where it was not added because of
 * that; `full` when the organisation has `ceiling` instances. Call in a transaction that holds the placement lock of the version.
 */
const WAKE = `
  INSERT INTO environment_instances (environment_id, version_id, org_id, provider, state)
  SELECT v.environment_id, v.id, e.org_id, v.provider, 'starting'
  FROM environment_versions AS v JOIN environments AS e ON e.id = v.environment_id
  WHERE v.id = $1 AND (NOT $2 OR NOT EXISTS (
    SELECT FROM environment_instances WHERE version_id = v.id AND stopped_at IS NULL AND ${SERVING}))
  RETURNING id`;
const OF_ORG = `
  SELECT count(*)::int AS count FROM environment_instances
  WHERE stopped_at IS NULL AND org_id = (SELECT e.org_id FROM environments AS e JOIN environment_versions AS v ON v.environment_id = e.id WHERE v.id = $1)`;

export async function wakeVersion(
  client: Queryable,
  versionId: string,
  alone: boolean,
  ceiling: number,
): Promise<{ id: string } | 'full' | null> {
  const { rows: counted } = await client.query<{ count: number }>(OF_ORG, [versionId]);
  if (counted[0]!.count >= ceiling) return 'full';
  const { rows } = await client.query<{ id: string }>(WAKE, [versionId, alone]);
  return rows[0] ?? null;
}

/** Instances begin to drain. The caller holds the placement locks of their versions, so no session is placed on them meanwhile. */
const DRAIN = `
  UPDATE environment_instances AS i SET state = 'draining', draining_at = now(), detail = n.reason
  FROM unnest($1::uuid[], $2::text[]) AS n(id, reason) WHERE i.id = n.id AND i.stopped_at IS NULL AND i.${SERVING}
  RETURNING i.id`;

export async function drainInstances(client: Queryable, drained: readonly { id: string; reason: string }[]): Promise<string[]> {
  const values = [drained.map(({ id }) => id), drained.map(({ reason }) => reason)];
  return (await client.query<{ id: string }>(DRAIN, values)).rows.map(({ id }) => id);
}

/** Waits for placements that run. */
export async function lockPlacement(client: Queryable, versionIds: readonly string[]): Promise<void> {
  const ordered = 'SELECT DISTINCT hashtext(version) AS hash FROM unnest($1::text[]) AS v(version) ORDER BY hash';
  await client.query({
    name: 'placement_lock',
    text: `SELECT pg_advisory_xact_lock(${PLACEMENT_LOCK}, hash) FROM (${ordered}) AS l`,
    values: [versionIds],
  });
}

/** What programs of tenants wrote may have a NUL, which no text of PostgreSQL has. */
const storable = (text: string | null): string | null => text?.replaceAll('\0', '') ?? null;

/** Instances that have ended, or must not be used any more. Their engine may still have something of them until `stopped_at` is set. */
const END = `
  UPDATE environment_instances AS i SET state = n.state, detail = coalesce(n.reason, i.detail)
  FROM unnest($1::uuid[], $2::text[], $3::text[]) AS n(id, state, reason) WHERE i.id = n.id AND i.state NOT IN ('failed', 'stopped')
  RETURNING i.id`;

export async function endInstances(
  pool: Queryable,
  ended: readonly { id: string; state: string; reason: string | null }[],
): Promise<string[]> {
  const values = [ended.map(({ id }) => id), ended.map(({ state }) => state), ended.map(({ reason }) => storable(reason))];
  return (await pool.query<{ id: string }>(END, values)).rows.map(({ id }) => id);
}

/** Their engines have nothing of them any more. `detail`: null keeps the stored one. */
export async function markStopped(pool: Queryable, stopped: readonly { id: string; detail: string | null }[]): Promise<void> {
  const text = `UPDATE environment_instances AS i SET stopped_at = now(), detail = coalesce(n.detail, i.detail)
    FROM unnest($1::uuid[], $2::text[]) AS n(id, detail) WHERE i.id = n.id AND i.stopped_at IS NULL`;
  await pool.query({
    name: 'instances_stopped',
    text,
    values: [stopped.map(({ id }) => id), stopped.map(({ detail }) => storable(detail))],
  });
}

/** Milliseconds from its row to its readiness, by id. Those that do not start any more are left out. */
export async function markReady(pool: Queryable, ready: readonly { id: string; endpoint: string }[]): Promise<Map<string, number>> {
  const text = `UPDATE environment_instances AS i SET state = 'ready', endpoint = n.endpoint, ready_at = now()
    FROM unnest($1::uuid[], $2::text[]) AS n(id, endpoint) WHERE i.id = n.id AND i.state = 'starting'
    RETURNING i.id, (extract(epoch FROM i.ready_at - i.created_at) * 1000)::float8 AS ms`;
  const values = [ready.map(({ id }) => id), ready.map(({ endpoint }) => endpoint)];
  const { rows } = await pool.query<{ id: string; ms: number }>({ name: 'instances_ready', text, values });
  return new Map(rows.map(({ id, ms }) => [id, ms]));
}

export async function saveStats(pool: Queryable, stats: readonly { id: string; stats: object }[]): Promise<void> {
  if (stats.length === 0) return;
  const text = `UPDATE environment_instances AS i SET stats = n.stats FROM unnest($1::uuid[], $2::jsonb[]) AS n(id, stats) WHERE i.id = n.id`;
  await pool.query(text, [stats.map(({ id }) => id), stats.map((one) => JSON.stringify(one.stats))]);
}

/** Living instances by state. */
export async function countInstances(pool: Queryable): Promise<{ state: string; count: number }[]> {
  const text = 'SELECT state, count(*)::int AS count FROM environment_instances WHERE stopped_at IS NULL GROUP BY 1';
  return (await pool.query<{ state: string; count: number }>(text)).rows;
}

/** Sessions that wait for an instance. Plan: sessions_instance_id_idx. */
export async function countWaiting(pool: Queryable): Promise<number> {
  const text = `SELECT count(*)::int AS count FROM sessions WHERE instance_id = '${WAITING}' AND ended_at IS NULL`;
  return (await pool.query<{ count: number }>(text)).rows[0]!.count;
}

/** Deletes rows of instances that are gone since `days`. */
export async function forgetInstances(pool: Queryable, days: number): Promise<void> {
  await pool.query(`DELETE FROM environment_instances WHERE stopped_at < now() - $1 * interval '1 day'`, [days]);
}
