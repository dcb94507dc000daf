import type { Denominator } from '@palestra/protocol';
import { ROLLOUT_FLAGS } from '@palestra/rollouts';
import type pg from 'pg';
import { newestOfRun } from '../../store/run-order.sql.ts';

/** Groups with the same number of scored and successful rollouts. */
export interface GroupClass {
  scored: number;
  successes: number;
  groups: number;
  /** Sums over the mean rewards of the groups. */
  sum_means: number;
  sum_squared_means: number;
}

/** Returns a few classes. Plan: Index Scan using rollout_groups_step_idx over the steps. */
export const GROUP_CLASSES = `
SELECT scored, successes, count(*)::int AS groups, COALESCE(sum(sum / NULLIF(scored, 0)), 0) AS sum_means, COALESCE(sum((sum / NULLIF(scored, 0)) ^ 2), 0) AS sum_squared_means
FROM rollout_groups WHERE run_seq = $1 AND step >= $2 AND step <= $3 AND phase = $4 AND ($5::int[] IS NULL OR env_id = ANY($5)) GROUP BY 1, 2`;

export async function selectGroupClasses(
  pool: pg.Pool,
  filter: { runSeq: number; from: number; to: number; phase: number; envIds: readonly number[] | null },
): Promise<GroupClass[]> {
  const { rows } = await pool.query<GroupClass>({
    name: 'run-group-classes',
    text: GROUP_CLASSES,
    values: [filter.runSeq, filter.from, filter.to, filter.phase, filter.envIds],
  });
  return rows;
}

/**
 * Percentiles of rewards, linear between closest ranks, one for each of `at` in [0, 1]; null without any reward. Aggregates skip nulls.
 * Reads every rollout of the steps. Plan: Index Scan using rollouts_run_step_idx.
 */
export const REWARD_PERCENTILES = `
SELECT percentile_cont($6::float8[]) WITHIN GROUP (ORDER BY CASE $7 WHEN 'all' THEN COALESCE(reward, partial_reward, 0) WHEN 'scored' THEN COALESCE(reward, partial_reward) ELSE reward END) AS found FROM rollouts
WHERE run_seq = $1 AND COALESCE(step, -1) >= $2 AND COALESCE(step, -1) <= $3 AND phase = $4 AND ($5::int[] IS NULL OR env_id = ANY($5))`;

export async function selectPercentiles(
  pool: pg.Pool,
  filter: { runSeq: number; from: number; to: number; phase: number; envIds: readonly number[] | null },
  den: Denominator,
  at: readonly number[],
): Promise<(number | null)[]> {
  const { rows } = await pool.query<{ found: (number | null)[] | null }>({
    name: 'run-reward-percentiles',
    text: REWARD_PERCENTILES,
    values: [filter.runSeq, filter.from, filter.to, filter.phase, filter.envIds, at, den],
  });
  return rows[0]?.found ?? at.map(() => null);
}

export interface RecentRollouts {
  /** Of the last 30 minutes. */
  rollouts: number;
  aborted: number;
  /** Of the newest 5 000: rollouts whose task is not known, because sessions of several tasks match. */
  ambiguous: number;
}

/** Counts among the newest rollouts of a run. Plan: rollouts_run_seq_idx backwards, at most 5 000 rows. */
export async function selectRecent(pool: pg.Pool, runSeq: number, stops: readonly number[]): Promise<RecentRollouts> {
  const { rows } = await pool.query<RecentRollouts>({
    name: 'run-recent',
    text: `SELECT count(*) FILTER (WHERE is_recent)::int AS rollouts, count(*) FILTER (WHERE is_recent AND stop = ANY($2::smallint[]))::int AS aborted,
        count(*) FILTER (WHERE flags & $3 <> 0)::int AS ambiguous
      FROM (SELECT stop, flags, received_at > now() - interval '30 minutes' AS is_recent FROM ${newestOfRun('$1', 5000)} r) newest`,
    values: [runSeq, stops, ROLLOUT_FLAGS.ambiguous_task],
  });
  return rows[0]!;
}
