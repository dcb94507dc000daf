import type { AlertCondition, AlertEvidence } from '@palestra/protocol';
import type pg from 'pg';
import { isFinished } from '../runs/run.sql.ts';

type Client = Pick<pg.Pool, 'query'>;

/** Runs of an organisation that one evaluation looks at: the newest ones. */
export const MAX_RUNS = 200;
/** A run without news for this time is over: its alerts are not judged any more. */
export const RUN_OVER_HOURS = 24;

export interface StoredAlert {
  id: string;
  org_id: string;
  name: string;
  runs: string | null;
  condition: AlertCondition;
  muted: boolean;
  webhook_id: string | null;
  since: Date;
}

/** Plan: Seq Scan of alerts, at most 100 rows per organisation. */
export async function selectAlertedOrganisations(pool: Client): Promise<string[]> {
  const { rows } = await pool.query<{ org_id: string }>('SELECT DISTINCT org_id FROM alerts ORDER BY org_id');
  return rows.map(({ org_id }) => org_id);
}

/** Plan: alerts_org_id_id_idx. */
export async function selectAlerts(pool: Client, orgId: string): Promise<StoredAlert[]> {
  const { rows } = await pool.query<StoredAlert>(
    'SELECT id, org_id, name, runs, condition, muted, webhook_id, since FROM alerts WHERE org_id = $1 ORDER BY id',
    [orgId],
  );
  return rows;
}

export interface AlertedRun {
  seq: number;
  id: string;
  name: string;
  version: string;
  /** Time of the last upload. */
  updated_at: Date;
  created_at: Date;
  finished: boolean;
  /** By the clock of the database, as the times above. */
  now: Date;
}

/** The runs with news. Plan: runs_org_id_updated_at_id_idx. */
export async function selectLiveRuns(pool: Client, orgId: string): Promise<AlertedRun[]> {
  const { rows } = await pool.query<AlertedRun>(
    `SELECT seq, id, name, version::text, updated_at, created_at, ${isFinished('runs')} AS finished, now() AS now FROM runs
     WHERE org_id = $1 AND deleted_at IS NULL AND updated_at > now() - $2::int * interval '1 hour' ORDER BY updated_at DESC, id LIMIT $3`,
    [orgId, RUN_OVER_HOURS, MAX_RUNS],
  );
  return rows;
}

/** A run that others are compared with. */
export type BaselineRun = Pick<AlertedRun, 'seq' | 'id' | 'name' | 'version'>;

/** The baselines of conditions, by the ids of their runs; without those that were deleted. Plan: runs_pkey. */
export async function selectBaselines(
  pool: Client,
  orgId: string,
  conditions: readonly AlertCondition[],
): Promise<Map<string, BaselineRun>> {
  const ids = new Set(conditions.flatMap((condition) => (condition.kind === 'baseline' ? [condition.run] : [])));
  if (ids.size === 0) return new Map();
  const { rows } = await pool.query<BaselineRun>(
    'SELECT seq, id, name, version::text FROM runs WHERE org_id = $1 AND id = ANY($2::uuid[]) AND deleted_at IS NULL',
    [orgId, [...ids]],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

export interface StoredState {
  alert_id: string;
  run_seq: number;
  firing: boolean;
  version: string;
  step: number | null;
  checked_at: Date;
}

/** Plan: alert_states_pkey, a probe for each alert and run. */
export async function selectStates(pool: Client, alertIds: readonly string[], runSeqs: readonly number[]): Promise<StoredState[]> {
  const { rows } = await pool.query<StoredState>(
    `SELECT alert_id, run_seq, firing, version::text, step, checked_at FROM alert_states WHERE alert_id = ANY($1::uuid[]) AND run_seq = ANY($2::int[])`,
    [alertIds, runSeqs],
  );
  return rows;
}

/** Ends the firing of alerts in runs that are over, without an event. Plan: alert_states_firing_idx, runs_seq_key. */
export async function endStatesOfOverRuns(pool: Client, orgId: string): Promise<void> {
  await pool.query(
    `UPDATE alert_states s SET firing = false, since = now() WHERE s.org_id = $1 AND s.firing
       AND NOT EXISTS (SELECT FROM runs r WHERE r.seq = s.run_seq AND r.deleted_at IS NULL AND r.updated_at > now() - $2::int * interval '1 hour')`,
    [orgId, RUN_OVER_HOURS],
  );
}

export interface NewState {
  firing: boolean;
  changed: boolean;
  version: string;
  step: number | null;
  evidence: AlertEvidence | null;
}

/**
 * Stores a judgement. False when the alert changed or was deleted meanwhile, or another process judged the run: then nothing is stored. Locks the
 * alert until the transaction ends. Plan: primary keys.
 */
export async function storeState(
  client: Client,
  { id, org_id, since }: Pick<StoredAlert, 'id' | 'org_id' | 'since'>,
  runSeq: number,
  previous: Date | null,
  { firing, changed, version, step, evidence }: NewState,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `WITH held AS MATERIALIZED (SELECT id FROM alerts WHERE id = $1 AND since = $4 FOR KEY SHARE)
     INSERT INTO alert_states AS s (alert_id, run_seq, org_id, firing, since, version, step, checked_at, evidence)
     SELECT held.id, $2, $3, $6, now(), $8::bigint, $9, clock_timestamp(), $10::jsonb FROM held
     ON CONFLICT (alert_id, run_seq) DO UPDATE SET firing = excluded.firing, since = CASE WHEN $7 THEN excluded.since ELSE s.since END, version = excluded.version,
       step = excluded.step, checked_at = excluded.checked_at, evidence = COALESCE(excluded.evidence, s.evidence)
     WHERE s.checked_at = $5::timestamptz`,
    [id, runSeq, org_id, since, previous, firing, changed, version, step, evidence === null ? null : JSON.stringify(evidence)],
  );
  return rowCount === 1;
}

export interface NewEvent {
  id: string;
  orgId: string;
  alertId: string;
  /** Null: of a hosted environment. */
  runSeq: number | null;
  environmentId?: string;
  kind: 'firing' | 'resolved';
  muted: boolean;
  evidence: AlertEvidence;
}

export async function insertEvent(
  client: Client,
  { id, orgId, alertId, runSeq, environmentId, kind, muted, evidence }: NewEvent,
): Promise<Date> {
  const { rows } = await client.query<{ at: Date }>(
    `INSERT INTO alert_events (id, org_id, alert_id, run_seq, kind, at, muted, evidence, environment_id)
     VALUES ($1, $2, $3, $4, $5, clock_timestamp(), $6, $7, $8) RETURNING at`,
    [id, orgId, alertId, runSeq, kind, muted, JSON.stringify(evidence), environmentId ?? null],
  );
  return rows[0]!.at;
}

export interface EventRow {
  seq: string;
  id: string;
  alert_id: string;
  alert_name: string;
  run_id: string | null;
  run_name: string | null;
  /** `owner/name`, of an event about a hosted environment. */
  environment: string | null;
  kind: 'firing' | 'resolved';
  at: Date;
  muted: boolean;
  evidence: AlertEvidence;
}

export interface EventFilter {
  orgId: string;
  alertId: string | null;
  runSeq: number | null;
  before: string | null;
  limit: number;
}

/** Newest first. Plan: alert_events_org_id_seq_idx, alert_events_alert_id_seq_idx or alert_events_run_seq_idx; primary keys per row. */
export async function selectEvents(pool: Client, { orgId, alertId, runSeq, before, limit }: EventFilter): Promise<EventRow[]> {
  const { rows } = await pool.query<EventRow>(
    `SELECT e.seq::text, e.id, e.alert_id, a.name AS alert_name, r.id AS run_id, r.name AS run_name, n.owner || '/' || n.name AS environment, e.kind, e.at,
       e.muted, e.evidence
     FROM alert_events e JOIN alerts a ON a.id = e.alert_id LEFT JOIN runs r ON r.seq = e.run_seq AND r.deleted_at IS NULL
       LEFT JOIN environments n ON n.id = e.environment_id
     WHERE e.org_id = $1 AND (r.seq IS NOT NULL OR n.id IS NOT NULL) AND ($2::uuid IS NULL OR e.alert_id = $2) AND ($3::int IS NULL OR e.run_seq = $3) AND ($4::bigint IS NULL OR e.seq < $4)
     ORDER BY e.seq DESC LIMIT $5`,
    [orgId, alertId, runSeq, before, limit],
  );
  return rows;
}

const MAX_UNREAD = 100;

/** Events after the one that the member read last, at most 100. Plan: alert_events_org_id_seq_idx, backwards. */
export async function selectUnread(pool: Client, orgId: string, userId: string): Promise<{ read: string; unread: number }> {
  const { rows } = await pool.query<{ read: string; unread: number }>(
    `WITH mark AS (SELECT COALESCE((SELECT event_seq FROM alert_reads WHERE org_id = $1 AND user_id = $2), 0) AS seq)
     SELECT mark.seq::text AS read, (SELECT count(*)::int FROM (
       SELECT FROM alert_events e WHERE e.org_id = $1 AND e.seq > mark.seq AND NOT e.muted LIMIT ${MAX_UNREAD}) unread) AS unread FROM mark`,
    [orgId, userId],
  );
  return rows[0]!;
}

/** Plan: alert_events_id_key. */
export async function markRead(pool: Client, orgId: string, userId: string, eventId: string): Promise<void> {
  await pool.query(
    `INSERT INTO alert_reads AS r (org_id, user_id, event_seq) SELECT org_id, $2, seq FROM alert_events WHERE org_id = $1 AND id = $3
     ON CONFLICT (org_id, user_id) DO UPDATE SET event_seq = GREATEST(r.event_seq, excluded.event_seq)`,
    [orgId, userId, eventId],
  );
}

export interface FiringRow {
  alert_id: string;
  alert_name: string;
  run_id: string | null;
  run_name: string | null;
  environment: string | null;
  since: Date;
  evidence: AlertEvidence;
}

/** Firing alerts, newest first; muted ones too. Plan: alert_states_firing_idx, or alert_states_run_seq_idx. */
export async function selectFiring(pool: Client, orgId: string, runSeq: number | null): Promise<FiringRow[]> {
  const { rows } = await pool.query<FiringRow>(
    `SELECT s.alert_id, a.name AS alert_name, r.id AS run_id, r.name AS run_name, NULL AS environment, s.since, s.evidence
     FROM alert_states s JOIN alerts a ON a.id = s.alert_id JOIN runs r ON r.seq = s.run_seq AND r.deleted_at IS NULL
     WHERE s.org_id = $1 AND s.firing AND ($2::int IS NULL OR s.run_seq = $2) ORDER BY s.since DESC, s.alert_id LIMIT 1000`,
    [orgId, runSeq],
  );
  return rows;
}

/** Deletes old events, with their deliveries. Plan: Seq Scan, once an hour; events are few. */
export async function deleteOldEvents(client: Client, days: number, limit: number): Promise<number> {
  const { rowCount } = await client.query(
    `DELETE FROM alert_events WHERE seq IN (SELECT seq FROM alert_events WHERE at < now() - $1::int * interval '1 day' ORDER BY seq LIMIT $2)`,
    [days, limit],
  );
  return rowCount ?? 0;
}
