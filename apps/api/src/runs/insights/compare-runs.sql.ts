import { type Denominator, STOP_REASONS, TRUNCATED_STOPS } from '@palestra/protocol';
import type pg from 'pg';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { solved } from '../solved.sql.ts';

/** Sums over the rollouts of a task; `task_id` null: rollouts without a known task. */
export interface TaskSums {
  task_id: number | null;
  environment: string | null;
  /** Orders tasks alike in all runs, independent of their ids. */
  place: number;
  /** Rollouts whose reward counts; only these are in `reward`, `reward_squares` and `successes`. */
  n: number;
  left_out: number;
  reward: number;
  reward_squares: number;
  successes: number;
  turns_known: number;
  turns: number;
  turns_squares: number;
  calls: number;
  calls_squares: number;
  errors: number;
  stops: number;
  truncated: number;
}

export interface TaskSumsFilter {
  runSeq: number;
  phase: number | null;
  /** Null: every rollout. */
  steps: readonly number[] | null;
  /** Name of the environment; null for all. */
  env: string | null;
  den: Denominator;
  limit: number;
}

/** Rewards beyond are cut: their squares would not be numbers. */
const MOST = '1e100';
/** With the partial sum of an interrupted rollout. */
const TOTAL = 'COALESCE(r.reward, r.partial_reward)';
const COUNTS: Record<Denominator, string> = {
  all: 'true',
  scored: `${TOTAL} IS NOT NULL`,
  effective: 'r.reward IS NOT NULL',
};

/**
 * One row per task, the rollouts without a task first. Plan: Index Scan using rollouts_run_step_idx over the rollouts of the run in these steps,
 * hashed by task; runs and run_environments are small. $6: stops of truncated rollouts.
 */
export const taskSumsSql = (den: Denominator): string => `WITH counted AS MATERIALIZED (
    SELECT r.task_id, ${COUNTS[den]} AS counts, LEAST(GREATEST(COALESCE(${TOTAL}, 0), -${MOST}), ${MOST}) AS reward,
      ${solved(TOTAL)} AS solved, r.turns::float8 AS turns, r.calls::float8 AS calls, r.call_errors, r.stop
    FROM rollouts r JOIN runs u ON u.seq = r.run_seq LEFT JOIN run_environments x ON x.run_seq = r.run_seq AND x.env_id = r.env_id
    WHERE r.run_seq = $1 AND ($2::smallint IS NULL OR r.phase = $2) AND ($3::int[] IS NULL OR COALESCE(r.step, -1) = ANY($3))
      AND ($4::text IS NULL OR r.env_id = ANY(ARRAY(SELECT e.id FROM rollout_environments e WHERE e.environment = $4)))),
  sums AS (
    SELECT task_id, hashint4(task_id) AS place, (count(*) FILTER (WHERE counts))::int AS n, (count(*) FILTER (WHERE NOT counts))::int AS left_out,
      COALESCE(sum(reward) FILTER (WHERE counts), 0) AS reward, COALESCE(sum(reward * reward) FILTER (WHERE counts), 0) AS reward_squares,
      (count(*) FILTER (WHERE counts AND solved))::int AS successes,
      count(turns)::int AS turns_known, COALESCE(sum(turns), 0) AS turns, COALESCE(sum(turns * turns), 0) AS turns_squares,
      sum(calls) AS calls, sum(calls * calls) AS calls_squares, sum(call_errors)::float8 AS errors,
      count(stop)::int AS stops, (count(*) FILTER (WHERE stop = ANY($6::smallint[])))::int AS truncated
    FROM counted GROUP BY 1 ORDER BY task_id IS NOT NULL, 2, 1 LIMIT $5)
  SELECT s.*, e.environment FROM sums s LEFT JOIN rollout_tasks t ON t.id = s.task_id LEFT JOIN rollout_environments e ON e.id = t.env_id
  ORDER BY s.task_id IS NOT NULL, s.place, s.task_id`;

const codesOf = (stops: readonly (typeof STOP_REASONS)[number][]) => stops.flatMap((stop) => codeOf(STOP_REASONS, stop) ?? []);

export async function selectTaskSums(pool: pg.Pool, { runSeq, phase, steps, env, den, limit }: TaskSumsFilter): Promise<TaskSums[]> {
  const values = [runSeq, phase, steps, env, limit, codesOf(TRUNCATED_STOPS)];
  const { rows } = await pool.query<TaskSums>(taskSumsSql(den), values);
  return rows;
}

export interface TaskName {
  id: number;
  key: string;
  task_index: number | null;
  split: string | null;
}

/** Plan: rollout_tasks_pkey. */
export async function selectTaskNames(pool: pg.Pool, ids: readonly number[]): Promise<Map<number, TaskName>> {
  const { rows } = await pool.query<TaskName>({
    name: 'compare-task-names',
    text: 'SELECT id, key, task_index, split FROM rollout_tasks WHERE id = ANY($1::int[])',
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, row]));
}
