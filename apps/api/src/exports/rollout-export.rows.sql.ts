import type { RunSettings } from '@palestra/rollouts';
import type pg from 'pg';
import { sampleSql } from '../rollouts/sample.sql.ts';
import { SOLVED } from '../runs/solved.sql.ts';
import { probe } from '../platform/database/probe.sql.ts';

/** A condition on `r`. Its parameters are numbered from `CONDITION_PARAMETER`. */
export interface Condition {
  sql: string;
  values: readonly unknown[];
}
export const CONDITION_PARAMETER = 5;

/** A rollout with all columns of an export. JSON is text, so that its numbers keep their digits. */
export interface DetailRow {
  seq: string;
  id: string;
  day: string;
  run: string;
  run_id: string;
  rollout_name: string | null;
  source: string | null;
  model: string | null;
  environment: string | null;
  environment_version: string | null;
  variant: string | null;
  split: string | null;
  task_key: string | null;
  task_index: number | null;
  task_spec: string | null;
  phase: number;
  step: number | null;
  policy_step: number | null;
  group_key: string | null;
  sample_idx: number | null;
  reward: number | null;
  partial_reward: number | null;
  reward_reported: number | null;
  reward_positive: number | null;
  max_reward: number | null;
  last_reward: number | null;
  reward_steps: number;
  stop: number | null;
  stop_raw: string | null;
  failure: number | null;
  finished: boolean;
  turns: number | null;
  messages: number;
  calls: number;
  call_errors: number;
  tokens_out: number | null;
  tokens_tool: number | null;
  bytes: string;
  gaps: number;
  flags: number;
  provenance: number;
  latency_ms: number | null;
  verdict: number | null;
  session_id: string | null;
  metadata: string | null;
  rollout_info: string | null;
  annotations: string | null;
  run_settings: RunSettings;
  /** All rewards of its run and environment are in [0, 1]. */
  unit_rewards: boolean;
  normaliser: number;
  started_at: number | null;
  received_at: Date;
  last_at: Date;
}

const jsonText = (expression: string) => `NULLIF((${expression})::text, 'null')`;

const DETAILS = `
SELECT p.seq::text, p.id, h.day::text, u.name AS run, u.id AS run_id, m.rollout_name, m.source, m.model,
  e.environment, COALESCE(v.number::text, b.rollout_info->>'env_version') AS environment_version, e.variant, p.split, t.key AS task_key, p.task_index,
  ${jsonText("b.start->'task_spec'")} AS task_spec, p.phase, p.step, p.policy_step, p.group_key::text, ${sampleSql('p')} AS sample_idx, p.reward, p.partial_reward, p.reward_reported,
  p.reward_positive, p.max_reward, p.last_reward, p.reward_steps, p.stop, m.stop_raw, p.failure, p.finished, p.turns, p.messages, p.calls, p.call_errors,
  p.tokens_out, p.tokens_tool, p.bytes::text, p.gaps, p.flags, p.provenance, p.latency_ms, h.verdict, m.sid AS session_id,
  ${jsonText("b.start->'metadata'")} AS metadata, ${jsonText('b.rollout_info')} AS rollout_info, p.normaliser,
  CASE WHEN jsonb_typeof(b.start->'timestamp') = 'number' THEN (b.start->>'timestamp')::float8 END AS started_at, p.received_at, p.last_at,
  u.settings AS run_settings, COALESCE((SELECT x.unit_rewards FROM run_environments x WHERE x.run_seq = p.run_seq AND x.env_id = p.env_id), true) AS unit_rewards,
  (SELECT json_agg(json_build_object('verdict', a.verdict, 'score', a.score, 'tag', a.tag, 'note', a.note, 'author', a.author, 'from_index', a.from_index,
     'to_index', a.to_index, 'created_at', a.created_at) ORDER BY a.created_at, a.id)::text FROM annotations a WHERE a.rollout_seq = p.seq) AS annotations
FROM page p ${probe('rollout_heads', 'seq = p.seq', 'h')} ${probe('runs', 'seq = p.run_seq', 'u')} ${probe('rollout_environments', 'id = p.env_id', 'e')}
  LEFT ${probe('rollout_starts', 'rollout_seq = p.seq', 'b')} LEFT ${probe('rollout_meta', 'rollout_seq = p.seq', 'm')} LEFT ${probe('rollout_tasks', 'id = p.task_id', 't')}
  LEFT ${probe('sessions', 'sid = m.sid AND org_id = h.org_id::text', 's')} LEFT ${probe('environment_versions', "id = NULLIF(s.version_id, '')::uuid", 'v')}`;

/** By arrival, or by group (a key of one phase and step). Each keyset has one number per column. */
const ORDERS = {
  arrival: { columns: ['r.seq'], start: ['0'] },
  group: { columns: ['r.group_key', 'r.phase', 'COALESCE(r.step, -1)', 'r.seq'], start: ['-9223372036854775808', '-1', '-2', '0'] },
} as const;
export type ExportOrder = keyof typeof ORDERS;

export interface DetailPage {
  runSeq: number;
  /** Excludes rollouts that arrived later. */
  asOf: string;
  order: ExportOrder;
  /** The keyset of the previous row; null at the start. */
  after: readonly string[] | null;
  limit: number;
  where: Condition | null;
}

/**
 * A page of one run's rollouts. Plan, by arrival: Index Scan using rollouts_run_seq_idx from the keyset; by group: Index Scan using
 * rollouts_run_group_idx with an Incremental Sort inside of the group; then one probe of each table's primary key per row.
 */
export async function selectDetailPage(pool: pg.Pool, { runSeq, asOf, order, after, limit, where }: DetailPage): Promise<DetailRow[]> {
  const { columns, start } = ORDERS[order];
  const position = columns.map((_, at) => `($4::bigint[])[${at + 1}]`).join(', ');
  const { rows } = await pool.query<DetailRow>(
    `WITH page AS MATERIALIZED (
       SELECT r.* FROM rollouts r WHERE r.run_seq = $1 AND r.seq <= $2 AND (${columns.join(', ')}) > (${position}) AND (${where?.sql ?? 'TRUE'})
       ORDER BY ${columns.join(', ')} LIMIT $3) ${DETAILS} ORDER BY ${columns.join(', ').replaceAll('r.', 'p.')}`,
    [runSeq, asOf, limit, after ?? start, ...(where?.values ?? [])],
  );
  return rows;
}

/** By `seq`. Plan: primary keys. */
export async function selectDetails(pool: pg.Pool, seqs: readonly string[]): Promise<DetailRow[]> {
  const { rows } = await pool.query<DetailRow>(
    `WITH page AS MATERIALIZED (SELECT r.* FROM rollouts r WHERE r.seq = ANY($1::bigint[])) ${DETAILS} ORDER BY p.seq`,
    [seqs],
  );
  return rows;
}

export interface GroupReward {
  group_key: string;
  phase: number;
  step: number | null;
  scored: number;
  mean: number;
  /** ddof 1; null for one rollout. */
  std: number | null;
}

/** Rewards of whole groups, effective rollouts only. Plan: Index Scan using rollouts_run_group_idx, once per group. */
export async function selectGroupRewards(pool: pg.Pool, runSeq: number, asOf: string, keys: readonly string[]): Promise<GroupReward[]> {
  const { rows } = await pool.query<GroupReward>({
    name: 'export-group-rewards',
    text: `SELECT r.group_key::text, r.phase, r.step, count(*)::int AS scored, avg(r.reward) AS mean,
        CASE WHEN max(r.reward) - min(r.reward) <= 1e-6 AND count(*) > 1 THEN 0 ELSE stddev_samp(r.reward) END AS std
      FROM rollouts r WHERE r.run_seq = $1 AND r.seq <= $2 AND r.group_key = ANY($3::bigint[]) AND r.reward IS NOT NULL GROUP BY r.group_key, r.phase, r.step`,
    values: [runSeq, asOf, keys],
  });
  return rows;
}

/** Number of rollouts that match. Plan: Index Only Scan using rollouts_run_seq_idx without a condition. */
export async function countMatches(pool: pg.Pool, runSeqs: readonly number[], asOf: string, where: Condition | null): Promise<number> {
  // $3 and $4 keep the numbers of the condition's parameters.
  const { rows } = await pool.query<{ total: string }>(
    `SELECT count(*) AS total FROM rollouts r WHERE r.run_seq = ANY($1::int[]) AND r.seq <= $2 AND $3::int IS NULL AND $4::int IS NULL AND (${where?.sql ?? 'TRUE'})`,
    [runSeqs, asOf, null, null, ...(where?.values ?? [])],
  );
  return Number(rows[0]!.total);
}

export interface TaskReward {
  seq: string;
  task_id: number;
  solved: boolean;
}

const FETCH = 5_000;

/**
 * Effective rollouts of tasks with an index, ordered by task, from one snapshot by a server-side cursor, so that neither side holds all of
 * them in memory. Plan: Index Scan using rollouts_run_seq_idx, Sort (on disk beyond work_mem).
 */
export async function* taskRewards(
  pool: pg.Pool,
  selection: { runSeqs: readonly number[]; asOf: string; afterTask: number; where: Condition | null },
): AsyncGenerator<TaskReward[]> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await client.query(
      `DECLARE tasks NO SCROLL CURSOR FOR SELECT r.seq::text, r.task_id, ${SOLVED} AS solved
       FROM rollouts r JOIN runs u ON u.seq = r.run_seq LEFT JOIN run_environments x ON x.run_seq = r.run_seq AND x.env_id = r.env_id
       WHERE r.run_seq = ANY($1::int[]) AND r.seq <= $2 AND r.task_id > $3 AND $4::int IS NULL AND r.task_index IS NOT NULL AND r.reward IS NOT NULL
         AND (${selection.where?.sql ?? 'TRUE'}) ORDER BY r.task_id, r.seq`,
      [selection.runSeqs, selection.asOf, selection.afterTask, null, ...(selection.where?.values ?? [])],
    );
    for (;;) {
      const { rows } = await client.query<TaskReward>(`FETCH ${FETCH} FROM tasks`);
      if (rows.length === 0) break;
      yield rows;
    }
  } finally {
    await client.query('ROLLBACK').catch(() => {});
    client.release();
  }
}

export interface TaskName {
  id: number;
  environment: string | null;
  split: string | null;
  task_index: number | null;
}

/** Plan: primary keys. */
export async function selectTaskNames(pool: pg.Pool, ids: readonly number[]): Promise<Map<number, TaskName>> {
  const { rows } = await pool.query<TaskName>(
    `SELECT t.id, e.environment, t.split, t.task_index FROM rollout_tasks t JOIN rollout_environments e ON e.id = t.env_id WHERE t.id = ANY($1::int[])`,
    [ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * The last rollout that an export includes, by order of arrival. An uncommitted statement may have a lower number; its rollouts are not
 * included.
 */
export async function latestSeq(pool: pg.Pool, most: string | null): Promise<string> {
  const { rows } = await pool.query<{ seq: string }>('SELECT LEAST(COALESCE(max(seq), 0), $1::bigint)::text AS seq FROM rollout_heads', [
    most,
  ]);
  return rows[0]!.seq;
}

export interface MessageRow {
  rollout_seq: string;
  event_id: string;
  index: number;
  type: string;
  name: string | null;
  call_id: string | null;
  content: string | null;
  content_reference: string | null;
  summary: string | null;
  reward: number | null;
  is_finished: boolean;
  blob_key: string | null;
  metadata: string | null;
  sent_at: string;
}

/** Messages of rollouts that are still rows, in their order. Plan: per rollout an Index Scan of its partition's primary key. */
export async function selectMessagesOf(pool: pg.Pool, locations: readonly { seq: string; day: string }[]): Promise<MessageRow[]> {
  const { rows } = await pool.query<MessageRow>({
    name: 'export-messages',
    text: `SELECT m.rollout_seq::text, m.event_id, m.index, m.type, m.name, m.call_id, m.content, m.content_reference, m.summary, m.reward, m.is_finished, m.blob_key,
        NULLIF(m.metadata::text, '{}') AS metadata, m.sent_at::text
      FROM unnest($1::bigint[], $2::date[]) AS h(seq, day) JOIN rollout_messages m ON m.day = h.day AND m.rollout_seq = h.seq
      ORDER BY m.rollout_seq, m.index, m.event_id`,
    values: [locations.map(({ seq }) => seq), locations.map(({ day }) => day)],
  });
  return rows;
}
