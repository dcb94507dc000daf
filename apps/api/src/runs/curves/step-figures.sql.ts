import type pg from 'pg';
import type { ArrivalWindow } from '../../store/derive/rollup/arrival-windows.ts';
import type { StepFigures, StoredFigure } from '../../store/derive/rollup/rollup.figures.ts';
import type { StepWindows } from '../../store/derive/rollup/rollup.sql.ts';

/** One rollup as curves read it. */
export interface StepRow {
  env_id: number;
  /** Of several variants together (environment-rows.ts): theirs. What is made of them is kept with the one of `env_id`. */
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

/** A window of arrival in the place of a step; `step` is its number from 0. */
export interface WindowRow extends StepRow {
  window: ArrivalWindow & {
    /** Its place in the stored list. */
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

/**
 * What came without a step, by window of arrival, in the order of windows; `step` counts the windows of all environments.
 * Plan: step_rollups_pkey, one row an environment and phase.
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

/** Those that it has rollouts of. Plan: run_environments_pkey, then rollout_environments_pkey and step_rollups_pkey a row. */
export async function selectEnvironments(pool: pg.Pool, runSeq: number): Promise<RunEnvironment[]> {
  const { rows } = await pool.query<RunEnvironment>({
    name: 'run-environments',
    text: `SELECT e.id, e.environment, e.variant, x.unit_rewards FROM run_environments x JOIN rollout_environments e ON e.id = x.env_id
      WHERE x.run_seq = $1 AND EXISTS (SELECT FROM step_rollups s WHERE s.run_seq = x.run_seq AND s.env_id = x.env_id) ORDER BY e.id LIMIT 1000`,
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

/** `figures` with what was made (`m`) among them. */
const merged = (figures: string) => `${figures} || CASE
          WHEN m.lens IS NULL THEN jsonb_build_object('histograms', COALESCE(${figures}->'histograms', '{}') || jsonb_build_object(m.set, m.histogram))
          ELSE jsonb_build_object('lenses', COALESCE(${figures}->'lenses', '{}') || jsonb_build_object(m.set, COALESCE(${figures}->'lenses'->m.set, '{}') || m.lens)) END`;
const MADE = 'AS m(env_id int, phase smallint, step int, at int, version bigint, set text, lens jsonb, histogram jsonb)';

/** Keeps figures with rollups that have not been made again meanwhile. Plan: step_rollups_pkey a row. */
export async function keepFigures(pool: pg.Pool, runSeq: number, made: readonly MadeFigures[]): Promise<void> {
  await pool.query({
    name: 'run-keep-figures',
    text: `UPDATE step_rollups r SET figures = ${merged('r.figures')} FROM jsonb_to_recordset($2::jsonb) ${MADE}
        WHERE r.run_seq = $1 AND r.env_id = m.env_id AND r.phase = m.phase AND r.step = m.step AND r.version = m.version`,
    values: [runSeq, JSON.stringify(made)],
  });
}

/** The same for windows of arrival. Plan: step_rollups_pkey, one row an environment and phase. */
export async function keepWindowFigures(pool: pg.Pool, runSeq: number, made: readonly (MadeFigures & { at: number })[]): Promise<void> {
  await pool.query({
    name: 'run-keep-window-figures',
    text: `WITH made AS MATERIALIZED (SELECT * FROM jsonb_to_recordset($2::jsonb) ${MADE})
        UPDATE step_rollups r SET windows = jsonb_set(r.windows, '{windows}', (
          SELECT jsonb_agg(CASE WHEN m.at IS NULL THEN x.w ELSE jsonb_set(x.w, '{figures}', ${merged("(x.w->'figures')")}) END ORDER BY x.position)
          FROM jsonb_array_elements(r.windows->'windows') WITH ORDINALITY AS x(w, position)
          LEFT JOIN made m ON m.env_id = r.env_id AND m.phase = r.phase AND m.at = x.position - 1))
        WHERE r.run_seq = $1 AND r.step = -1 AND r.windows IS NOT NULL
          AND (r.env_id, r.phase, r.version) IN (SELECT env_id, phase, version FROM made)`,
    values: [runSeq, JSON.stringify(made)],
  });
}
