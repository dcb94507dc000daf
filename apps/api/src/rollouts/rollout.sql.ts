import type pg from 'pg';
import type { JsonObject } from '@palestra/protocol';
import type { CauseRow } from './failure-texts.service.ts';
import { oldestOfRun } from '../store/run-order.sql.ts';
import { sampleSql } from './sample.sql.ts';

/** Columns of a narrow row with the names for its codes, as `RolloutRecord`. */
export const ROLLOUT_COLUMNS = `
  r.seq, r.id, r.run_seq, r.env_id, r.task_id, m.rollout_name, e.environment, e.variant, e.environment_id, r.split, r.step, r.policy_step, r.task_index,
  r.group_key, r.sample_idx, ${sampleSql('r')} AS sample, r.phase, r.reward, r.partial_reward, r.reward_reported, r.max_reward, r.messages, r.calls, r.call_errors, r.turns, r.tokens_out, r.tokens_tool,
  r.bytes, r.gaps, r.flags, r.provenance, r.finished, r.stop, r.failure, h.verdict, r.latency_ms, m.source, m.model, m.sid, r.received_at, r.last_at,
  extract(epoch FROM now() - r.last_at)::float8 * 1000 AS age_ms`;
export const ROLLOUT_NAMES = `JOIN rollout_environments e ON e.id = r.env_id JOIN rollout_heads h ON h.seq = r.seq LEFT JOIN rollout_meta m ON m.rollout_seq = r.seq`;

export interface RolloutRecord {
  seq: string;
  id: string;
  run_seq: number;
  env_id: number;
  task_id: number | null;
  rollout_name: string | null;
  environment: string | null;
  variant: string | null;
  environment_id: string | null;
  split: string | null;
  step: number | null;
  policy_step: number | null;
  task_index: number | null;
  group_key: string | null;
  /** Reported or inferred; `sample` also falls back to the order of arrival. */
  sample_idx: number | null;
  sample: number | null;
  phase: number;
  reward: number | null;
  partial_reward: number | null;
  reward_reported: number | null;
  max_reward: number | null;
  messages: number;
  calls: number;
  call_errors: number;
  turns: number | null;
  tokens_out: number | null;
  tokens_tool: number | null;
  bytes: string;
  gaps: number;
  flags: number;
  provenance: number;
  finished: boolean;
  stop: number | null;
  failure: number | null;
  verdict: number | null;
  latency_ms: number | null;
  source: string | null;
  model: string | null;
  sid: string | null;
  received_at: Date;
  last_at: Date;
  age_ms: number;
}

/**
 * Sorts for which an index reads any page. Rows without a value sort below all values, except unscored ones, which come last in both
 * directions and therefore have two indexes.
 */
export const rolloutSorts = {
  created_at: { column: 'r.seq', type: 'bigint' },
  reward: { column: `COALESCE(r.reward, '-Infinity')`, ascending: `COALESCE(r.reward, 'Infinity')`, type: 'float8' },
  step: { column: 'COALESCE(r.step, -1)', type: 'int' },
  task: { column: 'COALESCE(r.task_index, -1)', type: 'int' },
  turns: { column: 'COALESCE(r.turns, -1)', type: 'int' },
  messages: { column: 'r.messages', type: 'int' },
} as const;
export type RolloutSort = keyof typeof rolloutSorts;

/** The position after a page: the sort's value as text, and the row. */
export interface Keyset {
  value: string;
  seq: string;
}

export interface RolloutPage {
  /** Runs to search, all of one organisation. */
  runSeqs: readonly number[];
  sort: RolloutSort;
  order: 'asc' | 'desc';
  limit: number;
  offset?: number;
  after?: Keyset;
  /** From the keyset towards the beginning, nearest first. */
  backwards?: boolean;
  /** Reads at most this many rollouts of the one run after `after`. Only in the order of arrival. */
  readLimit?: number;
  /** A condition on `r` whose parameters are `values`, numbered from `firstParameter`. */
  where?: { sql: string; values: readonly unknown[] };
}
/** Parameters before those of a page's own condition. */
export const FIRST_PARAMETER = 6;

export type RolloutPageRow = RolloutRecord & { sort_value: string };

function sortColumn({ sort, order }: Pick<RolloutPage, 'sort' | 'order'>): string {
  const columns = rolloutSorts[sort];
  return order === 'asc' && 'ascending' in columns ? columns.ascending : columns.column;
}

/** The position of a rollout in lists of this order. Plan: rollouts_pkey. */
export async function selectKeyset(pool: pg.Pool, seq: string, order: Pick<RolloutPage, 'sort' | 'order'>): Promise<Keyset | undefined> {
  const { rows } = await pool.query<Keyset>(`SELECT (${sortColumn(order)})::text AS value, r.seq FROM rollouts r WHERE r.seq = $1`, [seq]);
  return rows[0];
}

/**
 * A page of rollouts. Plan, without a condition and in one run: Index Scan (backwards) of the sort's index from the keyset, then for each
 * row one probe of rollout_environments_pkey, rollout_heads_pkey and rollout_meta_pkey; the same at any depth.
 */
export async function selectRollouts(pool: pg.Pool, page: RolloutPage): Promise<RolloutPageRow[]> {
  const { type } = rolloutSorts[page.sort];
  const column = sortColumn(page);
  const [direction, beyond] = (page.order === 'asc') === (page.backwards !== true) ? ['ASC', '>'] : ['DESC', '<'];
  // With an equality PostgreSQL would also sort one run by the primary key, over the rollouts of all runs.
  const run = page.runSeqs.length === 1 ? `r.run_seq ${direction}, ` : '';
  const after = page.after ? `AND (${column}, r.seq) ${beyond} ($2::${type}, $3::bigint)` : 'AND $2::text IS NULL AND $3::bigint IS NULL';
  const source = page.readLimit === undefined ? 'rollouts' : oldestOfRun('($1::int[])[1]', 'COALESCE($3::bigint, 0)', page.readLimit);
  const { rows } = await pool.query<RolloutPageRow>(
    `SELECT ${ROLLOUT_COLUMNS}, r.sort_value FROM (
       SELECT r.*, (${column})::text AS sort_value FROM ${source} r WHERE r.run_seq = ANY($1::int[]) ${after} ${page.where ? `AND (${page.where.sql})` : ''}
       ORDER BY ${run}${column} ${direction}, r.seq ${direction} LIMIT $4 OFFSET $5) r ${ROLLOUT_NAMES}
     ORDER BY ${column} ${direction}, r.seq ${direction}`,
    [page.runSeqs, page.after?.value ?? null, page.after?.seq ?? null, page.limit, page.offset ?? 0, ...(page.where?.values ?? [])],
  );
  return rows;
}

/**
 * Counts at most `limit` rollouts, because a list shows "10k+" beyond. If the roll-ups have many more, nothing is counted, because ten
 * thousand index entries cost more than the page. Plan: step_rollups_pkey, one row per step; if that is not enough, Index Only Scan using
 * an index of the run.
 */
export async function countRollouts(
  pool: pg.Pool,
  runSeqs: readonly number[],
  where: RolloutPage['where'] | undefined,
  limit: number,
): Promise<number> {
  const counted = `SELECT count(*)::int FROM (SELECT FROM rollouts r WHERE r.run_seq = ANY($1::int[]) AND $2::int IS NULL AND $3::int IS NULL AND $5::int IS NULL
    ${where ? `AND (${where.sql})` : ''} LIMIT $4) c`;
  const known = '(SELECT sum(rollouts) FROM step_rollups WHERE run_seq = ANY($1::int[]) AND env_id = 0)';
  const { rows } = await pool.query<{ total: number }>(
    where ? `SELECT (${counted}) AS total` : `SELECT CASE WHEN ${known} >= 2 * $4::bigint THEN $4::int ELSE (${counted}) END AS total`,
    [runSeqs, null, null, limit, null, ...(where?.values ?? [])],
  );
  return rows[0]!.total;
}

/** The last rollout of a run in the order of arrival; 0 without any. Plan: Index Only Scan backwards using rollouts_run_seq_idx, one row. */
export async function latestRollout(pool: pg.Pool, runSeq: number): Promise<string> {
  const { rows } = await pool.query<{ seq: string }>('SELECT COALESCE(max(seq), 0)::text AS seq FROM rollouts WHERE run_seq = $1', [
    runSeq,
  ]);
  return rows[0]!.seq;
}

/** The last of the next `limit` rollouts of a run after `after`, at most `asOf`. Plan: Index Only Scan using rollouts_run_seq_idx, at most `limit` rows. */
export async function selectArrivalsEnd(
  pool: pg.Pool,
  { runSeq, after, asOf }: { runSeq: number; after: string | null; asOf: string },
  limit: number,
): Promise<{ until: string; isLast: boolean }> {
  const { rows } = await pool.query<{ until: string; isLast: boolean }>(
    `SELECT LEAST(max(seq), $3::bigint)::text AS until, count(*) < $4::int OR max(seq) >= $3 AS "isLast" FROM ${oldestOfRun('$1::int', '$2::bigint', '$4')} r`,
    [runSeq, after ?? '0', asOf, limit],
  );
  return rows[0]!;
}

/** A rollout as received. It has no narrow row before its start event arrives. */
export interface RolloutHead {
  seq: string;
  id: string;
  day: string;
  run_seq: number | null;
  run_id: string | null;
  run_name: string | null;
  messages: number;
  /** Of their bodies. */
  bytes: number;
  max_index: number;
  revision: number;
  dirty: boolean;
  sealed: boolean;
  received_at: Date;
  last_at: Date;
  start: JsonObject | null;
  rollout_info: JsonObject | null;
}

/** Plan: rollout_heads_org_id_id_key, runs_seq_key, rollout_starts_pkey. */
export async function selectHead(pool: pg.Pool, orgId: string, id: string): Promise<RolloutHead | null> {
  const { rows } = await pool.query<RolloutHead>(
    `SELECT h.seq, h.id, h.day::text, h.run_seq, runs.id AS run_id, runs.name AS run_name, h.messages, h.bytes::float8 AS bytes,
       h.max_index, h.revision, h.dirty, h.sealed_at IS NOT NULL AS sealed, h.received_at, h.last_at, s.start, s.rollout_info
     FROM rollout_heads h LEFT JOIN runs ON runs.seq = h.run_seq LEFT JOIN rollout_starts s ON s.rollout_seq = h.seq
     WHERE h.org_id = $1 AND h.id = $2 AND runs.deleted_at IS NULL`,
    [orgId, id],
  );
  return rows[0] ?? null;
}

/** A rollout with the rules of its values, from one snapshot, so that a verdict always has its rule. */
export interface RolloutDetail extends RolloutRecord, CauseRow {
  /** Names of rules, by the field that they set. */
  rules: Record<string, string> | null;
}

/** Plan: rollouts_pkey, rollout_heads_pkey, rollout_meta_pkey, rollout_rules_pkey. */
export async function selectRollout(pool: pg.Pool, seq: string): Promise<RolloutDetail | null> {
  const { rows } = await pool.query<RolloutDetail>(
    `SELECT ${ROLLOUT_COLUMNS}, r.revision, r.cause, r.cause_index, r.cause_kind, r.cause_tool, u.rules || jsonb_strip_nulls(jsonb_build_object('telemetry', m.telemetry_rule)) AS rules
     FROM rollouts r ${ROLLOUT_NAMES} LEFT JOIN rollout_rules u ON u.id = m.rules_id WHERE r.seq = $1`,
    [seq],
  );
  return rows[0] ?? null;
}
