import type pg from 'pg';
import { scoreOf } from './rollout.sql.ts';

export interface DifficultyFilter {
  orgId: string;
  environmentId: string;
  /** `owner/name`, for rollouts that were uploaded before the environment was known here. */
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
  response_chars: Record<'mean' | 'p1' | 'p10' | 'p25' | 'p50' | 'p75' | 'p90' | 'p99', number>;
  split: string | null;
  variant: string | null;
}

/**
 * Scored rollouts of an environment by (split, variant, task): openreward-wire.md 3.1. Characters of model output = assistant
 * text + tool-call arguments + reasoning, summed per rollout. Unscored rollouts are no zeros: they are left out.
 */
const DIFFICULTY = `
WITH scored AS (
  SELECT r.org_id, r.id, ${scoreOf('r')} AS reward, r.split, r.variant, COALESCE(r.task_index_info, r.task_index_start) AS task_index,
    (SELECT COALESCE(sum(char_length(COALESCE(m.content, '')) + CASE WHEN m.type = 'reasoning' THEN char_length(COALESCE(m.summary, '')) ELSE 0 END), 0)
     FROM rollout_messages m WHERE m.org_id = r.org_id AND m.rollout_id = r.id AND m.type IN ('assistant_message', 'tool_call', 'reasoning')) AS chars
  FROM rollouts r JOIN rollout_meta meta ON meta.org_id = r.org_id AND meta.rollout_id = r.id
  WHERE r.org_id = $1 AND (r.environment_id = $2 OR (r.environment_id IS NULL AND r.environment = $3)) AND ${scoreOf('r')} IS NOT NULL
    AND COALESCE(r.task_index_info, r.task_index_start) IS NOT NULL
    AND ($4::text IS NULL OR r.variant = $4) AND ($5::text IS NULL OR r.split = $5)
    AND ($6::text IS NULL OR meta.start->'run_info'->>'model_name' = $6)
    AND ($7::float8 IS NULL OR (meta.start->'run_info'->>'model_params')::float8 >= $7)
    AND ($8::float8 IS NULL OR (meta.start->'run_info'->>'model_params')::float8 <= $8)
    AND ($9::text IS NULL OR meta.start->'run_info'->>'training_stage' = $9)
)
SELECT task_index, avg(reward) AS avg_reward, min(reward) AS min_reward, max(reward) AS max_reward, count(*)::int AS num_rollouts, split, variant,
  avg(chars)::float8 AS mean,
  percentile_cont(ARRAY[0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]) WITHIN GROUP (ORDER BY chars) AS percentiles
FROM scored GROUP BY split, variant, task_index ORDER BY split NULLS FIRST, variant NULLS FIRST, task_index`;

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
