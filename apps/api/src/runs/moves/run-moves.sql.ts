import type { Moments } from '@palestra/metrics';
import { INTERRUPTED_STOPS, STOP_REASONS } from '@palestra/protocol';
import type pg from 'pg';
import { probe } from '../../platform/database/probe.sql.ts';
import { environmentVersion } from '../../rollouts/environment-version.sql.ts';
import { codeOf } from '../../store/vocabulary-codes.ts';

/** Which rollouts: those of one phase of a run; `envIds` null: of all environments. */
export interface MoveScope {
  runSeq: number;
  phase: number;
  envIds: readonly number[] | null;
}

/** Rollouts of each step whose properties are counted. */
export const MAX_ROLLOUTS = 5_000;
const MAX_STEPS = 2_000;
/** How far back the rewards of tasks are read. */
const HISTORY_STEPS = 100;
const MAX_PROPERTIES = 500;
const MAX_TASKS = 20_000;
/** Rewards beyond are cut: their squares would not be numbers. */
const MOST = '1e100';
const cutOff = (value: string) => `CASE WHEN ${value} IS NOT NULL THEN LEAST(GREATEST(${value}, -${MOST}), ${MOST}) END`;

export interface StepTotals {
  step: number;
  phase: number;
  rollouts: number;
  /** Of the figures; changes with them. */
  version: string;
  /** Rollouts with a reward, their mean and standard deviation (ddof 1), by environment if several are asked for. */
  parts: { n: number; mean: number | null; std: number | null }[];
}

/** Plan: Index Scan using step_rollups_pkey. */
export const STEP_TOTALS = `
SELECT step, phase, sum(rollouts)::int AS rollouts, string_agg(version::text, ' ' ORDER BY env_id) AS version,
  json_agg(json_build_object('n', figures->'canonical'->'reward_mean'->1, 'mean', figures->'canonical'->'reward_mean'->0,
    'std', figures->'canonical'->'reward_std'->0)) AS parts
FROM step_rollups WHERE run_seq = $1 AND env_id = ANY($2::int[]) GROUP BY step, phase ORDER BY step DESC LIMIT $3`;

export async function selectStepTotals(pool: pg.Pool, { runSeq, envIds }: Omit<MoveScope, 'phase'>): Promise<StepTotals[]> {
  const { rows } = await pool.query<StepTotals>({ name: 'move-steps', text: STEP_TOTALS, values: [runSeq, envIds ?? [0], MAX_STEPS] });
  return rows.toReversed();
}

export interface GroupTotals {
  step: number;
  groups: number;
  rollouts: number;
  sum: number;
  /** Sum over groups of the squared sum of rewards, divided by the number of rewards. */
  squares: number;
  /** Sum of all squared rewards. */
  reward_squares: number;
}

/** Groups with a reward, by step. Plan: Index Scan using rollout_groups_step_idx over the steps. */
export const GROUP_TOTALS = `
SELECT step, count(*)::int AS groups, sum(scored)::int AS rollouts, sum(${cutOff('sum')}) AS sum, sum((${cutOff('sum')}) ^ 2 / scored) AS squares,
  sum(LEAST(sum_squares, 1e200)) AS reward_squares
FROM rollout_groups WHERE run_seq = $1 AND phase = $2 AND step = ANY($3::int[]) AND scored > 0 AND ($4::int[] IS NULL OR env_id = ANY($4)) GROUP BY step`;

export async function selectGroupTotals(
  pool: pg.Pool,
  { runSeq, phase, envIds }: MoveScope,
  steps: readonly number[],
): Promise<Map<number, GroupTotals>> {
  const { rows } = await pool.query<GroupTotals>({ name: 'move-groups', text: GROUP_TOTALS, values: [runSeq, phase, steps, envIds] });
  return new Map(rows.map((row) => [row.step, row]));
}

export interface PropertyRow {
  /** `all`: every rollout. */
  kind: 'all' | 'tool_error' | 'stop' | 'version' | 'environment' | 'turns' | 'tokens' | 'interrupted';
  name: string;
  /** Of a version: the environment. */
  detail: string | null;
  now_rollouts: number;
  before_rollouts: number;
  /** By environment, of the groups with the property; those without it count in the row `all` only. */
  strata: { env: number; now: MomentColumns; before: MomentColumns }[];
  /** Calls and errors of a tool, else null. */
  calls: { now: { errors: number; calls: number }; before: { errors: number; calls: number } } | null;
  /** The first rollout of the step that has the property. */
  example: string | null;
}
export type MomentColumns = Omit<Moments, 'n' | 's' | 'nn' | 'ns' | 'ss'>;

const total = (value: string, when: string) => `COALESCE(sum(${value}) FILTER (WHERE ${when}), 0)`;
const MOMENTS: Record<Exclude<keyof MomentColumns, 'groups'>, string> = {
  n1: 'p.n',
  s1: 'p.s',
  nn1: 'w.n * p.n',
  ns1: 'w.n * p.s',
  sn1: 'w.s * p.n',
  ss1: 'w.s * p.s',
  n1n1: 'p.n * p.n',
  n1s1: 'p.n * p.s',
  s1s1: 'p.s * p.s',
};
const side = (when: string) => `json_build_object('groups', count(*) FILTER (WHERE p.n > 0 AND ${when}),
    ${Object.entries(MOMENTS)
      .map(([name, value]) => `'${name}', ${total(value, when)}`)
      .join(', ')})`;
const called = (name: string, when: string) =>
  `${total('p.errors', when)} AS ${name}_errors, sum(p.calls) FILTER (WHERE ${when}) AS ${name}_calls`;
const property = (
  kind: string,
  name: string,
  from: string,
  has = 'true',
  more = 'NULL::int AS calls, NULL::int AS errors, NULL AS detail',
) => `SELECT '${kind}' AS kind, ${name} AS name, m.cluster, m.env_id, m.now, m.seq, m.reward, ${has} AS has, ${more} FROM ${from}`;

/**
 * Properties of the rollouts of a step ($3) and of its baseline ($4): how many rollouts have each, and the moments of their groups
 * (`Moments`). Long and short are beyond the 10th and 90th percentile of the baseline. Plan: per step an Index Scan using
 * rollouts_run_step_idx of at most $6 rows; per row primary keys of rollout_tools, rollout_environments and those of environmentVersion.
 */
export const PROPERTIES = `
WITH member AS MATERIALIZED (
  SELECT r.*, e.environment, ${environmentVersion('r.seq')} AS version,
    CASE WHEN r.group_key IS NULL THEN r.seq ELSE min(r.seq) OVER (PARTITION BY r.at_step, r.group_key) END AS cluster
  FROM unnest($4::int[] || $3::int) AS s(step) CROSS JOIN LATERAL (
    SELECT seq, env_id, group_key, stop, turns, tokens_out::float8 + COALESCE(tokens_tool, 0) AS tokens, ${cutOff('reward')} AS reward, s.step AS at_step,
      s.step = $3 AS now FROM rollouts
    WHERE run_seq = $1 AND phase = $2 AND COALESCE(step, -1) = s.step AND ($5::int[] IS NULL OR env_id = ANY($5)) ORDER BY seq LIMIT $6) r
  JOIN rollout_environments e ON e.id = r.env_id),
usual AS MATERIALIZED (
  SELECT percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY turns) AS turns, percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY tokens) AS tokens
  FROM member WHERE NOT now),
property AS (
  ${property('all', "''", 'member m')}
  UNION ALL ${property('tool_error', 'x.tool', `member m ${probe('rollout_tools', 'rollout_seq = m.seq', 'x')}`, 'x.errors > 0', 'x.calls, x.errors, NULL')}
  UNION ALL ${property('stop', 'm.stop::text', 'member m WHERE m.stop IS NOT NULL AND m.stop <> ALL($8::smallint[])')}
  UNION ALL ${property('interrupted', "''", 'member m WHERE m.stop = ANY($8::smallint[])')}
  UNION ALL ${property('environment', 'm.environment', 'member m WHERE m.environment IS NOT NULL')}
  UNION ALL ${property('version', 'm.version', 'member m WHERE m.version IS NOT NULL', 'true', 'NULL, NULL, m.environment')}
  UNION ALL ${property('turns', "'>' || u.turns[2]", 'member m CROSS JOIN usual u WHERE m.turns > u.turns[2]')}
  UNION ALL ${property('turns', "'<' || u.turns[1]", 'member m CROSS JOIN usual u WHERE m.turns < u.turns[1]')}
  UNION ALL ${property('tokens', "'>' || u.tokens[2]", 'member m CROSS JOIN usual u WHERE m.tokens > u.tokens[2]')}
  UNION ALL ${property('tokens', "'<' || u.tokens[1]", 'member m CROSS JOIN usual u WHERE m.tokens < u.tokens[1]')}),
part AS MATERIALIZED (
  SELECT kind, name, detail, env_id, cluster, now, count(*) FILTER (WHERE has) AS rollouts, (count(reward) FILTER (WHERE has))::float8 AS n,
    COALESCE(sum(reward) FILTER (WHERE has), 0) AS s, sum(calls) AS calls, sum(errors) AS errors, min(seq) FILTER (WHERE has) AS first
  FROM property GROUP BY kind, name, detail, env_id, cluster, now),
stratum AS (
  SELECT p.kind, p.name, p.detail, p.env_id, ${total('p.rollouts', 'p.now')} AS now_rollouts, ${total('p.rollouts', 'NOT p.now')} AS before_rollouts,
    ${side('p.now')} AS now, ${side('NOT p.now')} AS before, ${called('now', 'p.now')}, ${called('before', 'NOT p.now')},
    min(p.first) FILTER (WHERE p.now) AS first
  FROM part p JOIN part w ON w.kind = 'all' AND w.cluster = p.cluster GROUP BY p.kind, p.name, p.detail, p.env_id)
SELECT kind, name, detail, sum(now_rollouts)::int AS now_rollouts, sum(before_rollouts)::int AS before_rollouts,
  json_agg(json_build_object('env', env_id, 'now', now, 'before', before)) AS strata,
  CASE WHEN kind = 'tool_error' THEN json_build_object('now', json_build_object('errors', sum(now_errors), 'calls', sum(now_calls)),
    'before', json_build_object('errors', sum(before_errors), 'calls', sum(before_calls))) END AS calls, min(first)::text AS example
FROM stratum GROUP BY kind, name, detail HAVING sum(now_rollouts + before_rollouts) > 0
ORDER BY kind <> 'all', sum(now_rollouts + before_rollouts) DESC, kind, name LIMIT $7`;

const INTERRUPTED = INTERRUPTED_STOPS.map((stop) => codeOf(STOP_REASONS, stop)!);

export async function selectProperties(
  pool: pg.Pool,
  { runSeq, phase, envIds }: MoveScope,
  step: number,
  baseline: readonly number[],
): Promise<PropertyRow[]> {
  const values = [runSeq, phase, step, baseline, envIds, MAX_ROLLOUTS, MAX_PROPERTIES, INTERRUPTED];
  const { rows } = await pool.query<PropertyRow>({ name: 'move-properties', text: PROPERTIES, values });
  return rows;
}

export interface TaskRow {
  task_id: number;
  now: number;
  before: number;
  /** Rewards of earlier steps minus the mean of their step. */
  count: number;
  sum: number;
  sum_squares: number;
  /** Earlier groups, and the sum over them of the squared sum of these rewards, divided by their number. */
  visits: number;
  visit_squares: number;
}

/** Tasks of a step ($3) and of its baseline ($4), from groups. Plan: Index Scan using rollout_groups_step_idx over at most 100 steps. */
export const TASKS = `
WITH scored AS MATERIALIZED (
  SELECT g.step, g.task_id, g.scored, ${cutOff('g.sum')} AS sum, LEAST(g.sum_squares, 1e200) AS sum_squares FROM rollout_groups g
  WHERE g.run_seq = $1 AND g.phase = $2 AND g.step >= $5 AND g.step <= $3 AND g.scored > 0 AND g.task_id IS NOT NULL
    AND ($6::int[] IS NULL OR g.env_id = ANY($6))),
centred AS (SELECT *, sum(sum) OVER (PARTITION BY step) / sum(scored) OVER (PARTITION BY step) AS mean FROM scored)
SELECT task_id, COALESCE(sum(scored) FILTER (WHERE step = $3), 0)::int AS now, COALESCE(sum(scored) FILTER (WHERE step = ANY($4::int[])), 0)::int AS before,
  COALESCE(sum(scored) FILTER (WHERE step < $3), 0)::int AS count, COALESCE(sum(sum - scored * mean) FILTER (WHERE step < $3), 0) AS sum,
  COALESCE(sum(sum_squares - 2 * mean * sum + scored * mean * mean) FILTER (WHERE step < $3), 0) AS sum_squares,
  (count(*) FILTER (WHERE step < $3))::int AS visits, COALESCE(sum((sum - scored * mean) ^ 2 / scored) FILTER (WHERE step < $3), 0) AS visit_squares
FROM centred GROUP BY task_id HAVING bool_or(step = $3 OR step = ANY($4::int[])) ORDER BY task_id LIMIT $7`;

export async function selectTaskShares(
  pool: pg.Pool,
  { runSeq, phase, envIds }: MoveScope,
  step: number,
  baseline: readonly number[],
): Promise<TaskRow[]> {
  const values = [runSeq, phase, step, baseline, Math.max(0, step - HISTORY_STEPS), envIds, MAX_TASKS];
  const { rows } = await pool.query<TaskRow>({ name: 'move-tasks', text: TASKS, values });
  return rows;
}

export interface SampleRow {
  seq: string;
  id: string;
  org_id: string;
  env_id: number;
  now: boolean;
  /** Equal for rollouts of one group. */
  cluster: string;
  reward: number | null;
  /** Of its messages. */
  bytes: number;
  day: string;
  sealed: boolean;
  /** Tools that it called, and those of which a call failed. */
  called: string[];
  failed: string[];
}

/**
 * The first rollouts of a step ($3), at most $6, and of each step of its baseline ($4), at most $7. Plan: per step an Index Scan using
 * rollouts_run_step_idx, bounded; per row rollout_heads_pkey and rollout_tools_pkey.
 */
export const SAMPLE = `
SELECT r.seq::text, r.id, (SELECT org_id::text FROM runs WHERE seq = $1) AS org_id, r.env_id, r.now, COALESCE('g' || r.step || ' ' || r.group_key, r.id::text) AS cluster,
  r.reward, r.bytes::float8 AS bytes, h.day::text, h.sealed_at IS NOT NULL AS sealed, COALESCE(x.called, '{}') AS called, COALESCE(x.failed, '{}') AS failed
FROM unnest($4::int[] || $3::int) AS s(step) CROSS JOIN LATERAL (
  SELECT seq, id, env_id, group_key, step, bytes, ${cutOff('reward')} AS reward, s.step = $3 AS now FROM rollouts
  WHERE run_seq = $1 AND phase = $2 AND COALESCE(step, -1) = s.step AND ($5::int[] IS NULL OR env_id = ANY($5))
  ORDER BY seq LIMIT CASE WHEN s.step = $3 THEN $6::int ELSE $7::int END) r
JOIN rollout_heads h ON h.seq = r.seq
LEFT JOIN LATERAL (SELECT array_agg(t.tool) AS called, array_agg(t.tool) FILTER (WHERE t.errors > 0) AS failed FROM rollout_tools t WHERE t.rollout_seq = r.seq) x ON true
ORDER BY r.seq`;

export async function selectSample(
  pool: pg.Pool,
  { runSeq, phase, envIds }: MoveScope,
  { step, baseline, most }: { step: number; baseline: readonly number[]; most: number },
): Promise<SampleRow[]> {
  const values = [runSeq, phase, step, baseline, envIds, most, Math.ceil(most / baseline.length)];
  const { rows } = await pool.query<SampleRow>({ name: 'move-sample', text: SAMPLE, values });
  return rows;
}

export interface ExampleRow {
  seq: string;
  id: string;
  day: string;
  sealed: boolean;
}

/** Plan: rollouts_pkey and rollout_heads_pkey per row. */
export const EXAMPLES = `
SELECT r.seq::text, r.id, h.day::text, h.sealed_at IS NOT NULL AS sealed FROM rollouts r JOIN rollout_heads h ON h.seq = r.seq
WHERE r.seq = ANY($2::bigint[]) AND r.run_seq = $1`;

export async function selectExamples(pool: pg.Pool, runSeq: number, seqs: readonly string[]): Promise<Map<string, ExampleRow>> {
  const { rows } = await pool.query<ExampleRow>({ name: 'move-examples', text: EXAMPLES, values: [runSeq, seqs] });
  return new Map(rows.map((row) => [row.seq, row]));
}
