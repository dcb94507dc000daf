import type pg from 'pg';
import type { ArrivalWindow } from './arrival-windows.ts';
import type { StepFigures, StoredFigure } from './step-rollup.ts';
import type { StepWindows } from './step-rollup.sql.ts';

/** A rollup as curves read it. */
export interface StepRow {
  env_id: number;
  /** The environments of a row of several variants (environment-rows.ts). Its computed figures are stored with the rollup of `env_id`. */
  env_ids?: readonly number[];
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

/** An arrival window as a step; `step` is its number from 0. */
export interface WindowRow extends StepRow {
  window: ArrivalWindow & {
    /** Index in the stored list. */
    at: number;
    width_ms: number;
  };
}
export const isWindow = (row: StepRow): row is WindowRow => 'window' in row;

export interface StepFilter {
  runSeq: number;
  /** Null: the rows of all environments together. */
  envIds: readonly number[] | null;
  phase?: number;
  /** Both ends included. */
  steps?: { from: number; to: number };
}

/** Maximum of steps in one answer; of a longer run the last ones. */
export const MAX_STEPS = 20_000;

/** Rollups in the order of their steps. Plan: Index Scan using step_rollups_pkey (one per run and environment); rollouts are not read. */
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

/**
 * Rollouts without a step, by arrival window, in the order of windows; `step` counts the windows of all environments.
 * Plan: step_rollups_pkey, one row per environment and phase.
 */
export async function selectWindows(pool: pg.Pool, filter: Pick<StepFilter, 'runSeq' | 'envIds' | 'phase'>): Promise<WindowRow[]> {
  const { rows } = await pool.query<{ env_id: number; phase: number; version: string; windows: StepWindows | null }>({
    name: 'run-windows',
    text: `SELECT env_id, phase, version::text, windows FROM step_rollups
      WHERE run_seq = $1 AND env_id = ANY($2::int[]) AND step = -1 AND ($3::smallint IS NULL OR phase = $3) ORDER BY phase, env_id`,
    values: [filter.runSeq, filter.envIds ?? [0], filter.phase ?? null],
  });
  const found = rows.flatMap(({ env_id, phase, version, windows }) =>
    (windows?.windows ?? []).map(({ from, to, first_seq, last_seq, figures, ...sums }, at) => ({
      ...sums,
      figures: figures as StepFigures,
      env_id,
      phase,
      version,
      window: { from, to, first_seq, last_seq, at, width_ms: windows!.width_ms },
    })),
  );
  const numbers = new Map([...new Set(found.map(({ window }) => window.from))].toSorted((a, b) => a - b).map((from, at) => [from, at]));
  return found.map((row) => ({ ...row, step: numbers.get(row.window.from)! })).toSorted((a, b) => a.step - b.step);
}

/** When the first rollout of each step arrived, milliseconds since the epoch. Plan: per step one probe of rollouts_run_step_idx. */
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

/** The environments that the run has rollouts of. Plan: run_environments_pkey, then rollout_environments_pkey and step_rollups_pkey per row. */
export async function selectEnvironments(pool: pg.Pool, runSeq: number): Promise<RunEnvironment[]> {
  const { rows } = await pool.query<RunEnvironment>({
    name: 'run-environments',
    text: `SELECT e.id, e.environment, e.variant, x.unit_rewards FROM run_environments x JOIN rollout_environments e ON e.id = x.env_id
      WHERE x.run_seq = $1 AND EXISTS (SELECT FROM step_rollups s WHERE s.run_seq = x.run_seq AND s.env_id = x.env_id) ORDER BY e.id LIMIT 1000`,
    values: [runSeq],
  });
  return rows;
}

export interface ComputedFigures {
  env_id: number;
  phase: number;
  step: number;
  version: string;
  set: string;
  lens: Record<string, StoredFigure> | null;
  histogram: StepFigures['histogram'] | null;
}

/** `figures` with the computed ones (`m`). */
const merged = (figures: string) => `${figures} || CASE
          WHEN m.lens IS NULL THEN jsonb_build_object('histograms', COALESCE(${figures}->'histograms', '{}') || jsonb_build_object(m.set, m.histogram))
          ELSE jsonb_build_object('lenses', COALESCE(${figures}->'lenses', '{}') || jsonb_build_object(m.set, COALESCE(${figures}->'lenses'->m.set, '{}') || m.lens)) END`;
const COMPUTED = 'AS m(env_id int, phase smallint, step int, at int, version bigint, set text, lens jsonb, histogram jsonb)';

/** Stores figures with rollups of the same version: a rebuilt rollup does not get figures of the earlier one. Plan: step_rollups_pkey per row. */
export async function storeFigures(pool: pg.Pool, runSeq: number, computed: readonly ComputedFigures[]): Promise<void> {
  await pool.query({
    name: 'figures-store',
    text: `UPDATE step_rollups r SET figures = ${merged('r.figures')} FROM jsonb_to_recordset($2::jsonb) ${COMPUTED}
        WHERE r.run_seq = $1 AND r.env_id = m.env_id AND r.phase = m.phase AND r.step = m.step AND r.version = m.version`,
    values: [runSeq, JSON.stringify(computed)],
  });
}

/** The same for arrival windows. Plan: step_rollups_pkey, one row per environment and phase. */
export async function storeWindowFigures(
  pool: pg.Pool,
  runSeq: number,
  computed: readonly (ComputedFigures & { at: number })[],
): Promise<void> {
  await pool.query({
    name: 'figures-store-windows',
    text: `WITH computed AS MATERIALIZED (SELECT * FROM jsonb_to_recordset($2::jsonb) ${COMPUTED})
        UPDATE step_rollups r SET windows = jsonb_set(r.windows, '{windows}', (
          SELECT jsonb_agg(CASE WHEN m.at IS NULL THEN x.w ELSE jsonb_set(x.w, '{figures}', ${merged("(x.w->'figures')")}) END ORDER BY x.position)
          FROM jsonb_array_elements(r.windows->'windows') WITH ORDINALITY AS x(w, position)
          LEFT JOIN computed m ON m.env_id = r.env_id AND m.phase = r.phase AND m.at = x.position - 1))
        WHERE r.run_seq = $1 AND r.step = -1 AND r.windows IS NOT NULL
          AND (r.env_id, r.phase, r.version) IN (SELECT env_id, phase, version FROM computed)`,
    values: [runSeq, JSON.stringify(computed)],
  });
}
