import type pg from 'pg';
import { SOLVED } from './solved.sql.ts';

export interface DifficultyFilter {
  orgId: string;
  environmentId: string;
  /** `owner/name`, for rollouts that were uploaded before the environment was registered. */
  environment: string;
  variant?: string;
  split?: string;
  modelName?: string;
  minModelParams?: number;
  maxModelParams?: number;
  trainingStage?: string;
}

export interface DifficultyRow {
  task_index: number;
  avg_reward: number;
  min_reward: number;
  max_reward: number;
  num_rollouts: number;
  num_solved: number;
  response_chars: Record<'mean' | 'p1' | 'p10' | 'p25' | 'p50' | 'p75' | 'p90' | 'p99', number>;
  split: string | null;
  variant: string | null;
}

/** The uploaded value may be anything; null when it is not a number, like `7B`. */
const PARAMS = "meta.start->'run_info'->>'model_params'";
const MODEL_PARAMS = `(CASE WHEN ${PARAMS} ~ '^\\d{1,30}(\\.\\d{1,30})?([eE][+-]?\\d{1,2})?$' THEN (${PARAMS})::float8 END)`;

/**
 * Scored rollouts of an environment by (split, variant, task) (docs/reference/ors.md#task-difficulty). Characters of model output = assistant
 * text + tool-call arguments + reasoning, summed per rollout. Unscored rollouts are excluded.
 */
const DIFFICULTY = `
WITH scored AS (
  SELECT r.reward, r.split, e.variant, r.task_index, h.output_chars AS chars,
    ${SOLVED} AS solved
  FROM rollout_environments e JOIN rollouts r ON r.env_id = e.id JOIN runs u ON u.seq = r.run_seq JOIN rollout_heads h ON h.seq = r.seq
  LEFT JOIN rollout_starts meta ON meta.rollout_seq = r.seq
  LEFT JOIN run_environments x ON x.run_seq = r.run_seq AND x.env_id = r.env_id
  WHERE e.org_id = $1 AND u.deleted_at IS NULL AND (e.environment_id = $2 OR (e.environment_id IS NULL AND e.environment = $3))
    AND r.reward IS NOT NULL AND r.task_index IS NOT NULL
    AND ($4::text IS NULL OR e.variant = $4) AND ($5::text IS NULL OR r.split = $5)
    AND ($6::text IS NULL OR meta.start->'run_info'->>'model_name' = $6)
    AND ($7::float8 IS NULL OR ${MODEL_PARAMS} >= $7)
    AND ($8::float8 IS NULL OR ${MODEL_PARAMS} <= $8)
    AND ($9::text IS NULL OR meta.start->'run_info'->>'training_stage' = $9)
)
SELECT task_index, avg(reward) AS avg_reward, min(reward) AS min_reward, max(reward) AS max_reward, count(*)::int AS num_rollouts,
  count(*) FILTER (WHERE solved)::int AS num_solved, split, variant,
  avg(chars)::float8 AS mean,
  percentile_cont(ARRAY[0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]) WITHIN GROUP (ORDER BY chars) AS percentiles
FROM scored GROUP BY split, variant, task_index ORDER BY split NULLS FIRST, variant NULLS FIRST, task_index`;

/** The same means and counts without the rest, for as many tasks as a split has. */
const MEANS = `
SELECT r.task_index AS index, avg(r.reward)::float8 AS avg_reward, count(*)::int AS num_rollouts
FROM rollout_environments e JOIN rollouts r ON r.env_id = e.id JOIN runs u ON u.seq = r.run_seq
WHERE e.org_id = $1 AND u.deleted_at IS NULL AND (e.environment_id = $2 OR (e.environment_id IS NULL AND e.environment = $3))
  AND r.split = $4 AND r.reward IS NOT NULL AND r.task_index IS NOT NULL
GROUP BY r.task_index`;

interface TaskMean {
  index: number;
  avg_reward: number;
  num_rollouts: number;
}

/** Mean rewards of the tasks of a split over the scored rollouts of all variants. */
export async function selectTaskMeans(
  pool: pg.Pool,
  of: Pick<DifficultyFilter, 'orgId' | 'environmentId' | 'environment'> & { split: string },
): Promise<TaskMean[]> {
  return (await pool.query<TaskMean>(MEANS, [of.orgId, of.environmentId, of.environment, of.split])).rows;
}

export async function selectTaskDifficulty(pool: pg.Pool, filter: DifficultyFilter): Promise<DifficultyRow[]> {
  const { rows } = await pool.query<Omit<DifficultyRow, 'response_chars'> & { mean: number; percentiles: number[] }>(DIFFICULTY, [
    filter.orgId,
    filter.environmentId,
    filter.environment,
    filter.variant ?? null,
    filter.split ?? null,
    filter.modelName ?? null,
    filter.minModelParams ?? null,
    filter.maxModelParams ?? null,
    filter.trainingStage ?? null,
  ]);
  return rows.map(({ mean, percentiles, ...row }) => {
    const [p1, p10, p25, p50, p75, p90, p99] = percentiles as [number, number, number, number, number, number, number];
    return { ...row, response_chars: { mean, p1, p10, p25, p50, p75, p90, p99 } };
  });
}
