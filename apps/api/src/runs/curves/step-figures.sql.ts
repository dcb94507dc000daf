import type pg from 'pg';
import type { StepFigures, StoredFigure } from '../../rollouts/derive/rollup.figures.ts';

/** One rollup as curves read it. */
export interface StepRow {
  env_id: number;
  phase: number;
  step: number;
  rollouts: number;
  scored: number;
  errors: number;
  finished: number;
  messages: number;
  reward_sum: number;
  /** Packed, the weakest of each field. */
  provenance: number;
  version: string;
  figures: StepFigures;
}

export interface StepFilter {
  runSeq: number;
  /** Null: the rows of all environments together. */
  envIds: readonly number[] | null;
  phase?: number;
  /** Both ends included. */
  steps?: { from: number; to: number };
}

/** Most steps that one answer looks at; of a longer run the last ones. */
export const MAX_STEPS = 20_000;

/** Rollups in the order of their steps. Plan: Index Scan using step_rollups_pkey (one a run and environment); rollouts are not read. */
export const STEPS = `
SELECT env_id, phase, step, rollouts, scored, errors, finished, messages::float8 AS messages, reward_sum, provenance, version::text, figures FROM step_rollups
WHERE run_seq = $1 AND env_id = ANY($2::int[]) AND ($3::smallint IS NULL OR phase = $3) AND step >= $4 AND step <= $5
ORDER BY step DESC, phase, env_id LIMIT $6`;

export async function selectSteps(pool: pg.Pool, filter: StepFilter): Promise<StepRow[]> {
  const { rows } = await pool.query<StepRow>({
    name: 'run-steps',
    text: STEPS,
    values: [
      filter.runSeq,
      filter.envIds ?? [0],
      filter.phase ?? null,
      filter.steps?.from ?? -1,
      filter.steps?.to ?? 2_147_483_647,
      MAX_STEPS,
    ],
  });
  return rows.toReversed();
}

/** When the first rollout of each step came, milliseconds since the epoch. Plan: per step one probe of rollouts_run_step_idx. */
export async function selectStepTimes(pool: pg.Pool, runSeq: number, steps: readonly number[]): Promise<Map<number, number>> {
  const { rows } = await pool.query<{ step: number; at: number }>({
    name: 'run-step-times',
    text: `SELECT s.step, (SELECT extract(epoch FROM r.received_at)::float8 * 1000 FROM rollouts r WHERE r.run_seq = $1 AND COALESCE(r.step, -1) = s.step
        ORDER BY r.seq LIMIT 1) AS at FROM unnest($2::int[]) AS s(step)`,
    values: [runSeq, steps],
  });
  return new Map(rows.filter(({ at }) => at !== null).map(({ step, at }) => [step, at]));
}

export interface RunEnvironment {
  id: number;
  environment: string | null;
  variant: string | null;
  unit_rewards: boolean;
}

/** Plan: run_environments_pkey, then rollout_environments_pkey a row. */
export async function selectEnvironments(pool: pg.Pool, runSeq: number): Promise<RunEnvironment[]> {
  const { rows } = await pool.query<RunEnvironment>({
    name: 'run-environments',
    text: `SELECT e.id, e.environment, e.variant, x.unit_rewards FROM run_environments x JOIN rollout_environments e ON e.id = x.env_id
      WHERE x.run_seq = $1 ORDER BY e.id LIMIT 1000`,
    values: [runSeq],
  });
  return rows;
}

export interface MadeFigures {
  env_id: number;
  phase: number;
  step: number;
  version: string;
  set: string;
  lens: Record<string, StoredFigure> | null;
  histogram: StepFigures['histogram'] | null;
}

/** Keeps figures with rollups that have not been made again meanwhile. Plan: step_rollups_pkey a row. */
export async function keepFigures(pool: pg.Pool, runSeq: number, made: readonly MadeFigures[]): Promise<void> {
  await pool.query({
    name: 'run-keep-figures',
    text: `UPDATE step_rollups r SET figures = r.figures || CASE
          WHEN m.lens IS NULL THEN jsonb_build_object('histograms', COALESCE(r.figures->'histograms', '{}') || jsonb_build_object(m.set, m.histogram))
          ELSE jsonb_build_object('lenses', COALESCE(r.figures->'lenses', '{}') || jsonb_build_object(m.set, COALESCE(r.figures->'lenses'->m.set, '{}') || m.lens)) END
        FROM jsonb_to_recordset($2::jsonb) AS m(env_id int, phase smallint, step int, version bigint, set text, lens jsonb, histogram jsonb)
        WHERE r.run_seq = $1 AND r.env_id = m.env_id AND r.phase = m.phase AND r.step = m.step AND r.version = m.version`,
    values: [runSeq, JSON.stringify(made)],
  });
}
