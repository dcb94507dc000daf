import { groupBy } from '@palestra/metrics';
import { weakerProvenance } from '../../store/figures/step-columns.ts';
import { isWindow, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** What a row counts: all environments (0), or the environment of this name, whose variants have an id each. */
export const environmentOf = ({ env_id }: StepRow, names: ReadonlyMap<number, string | null>): string | null | 0 =>
  env_id === 0 ? 0 : (names.get(env_id) ?? null);

/** One row per step, phase and environment, with all variants together, in the order of `rows`. `withFigures` computes figures of several variants. */
export function rowsOfEnvironments(rows: readonly StepRow[], names: ReadonlyMap<number, string | null>): StepRow[] {
  const environments = groupBy(rows, (row) => JSON.stringify([row.phase, row.step, environmentOf(row, names)]));
  return [...environments.values()].map((variants) => (variants.length === 1 ? variants[0]! : mergeVariants(variants)));
}

/** Merges counts. Of the figures it keeps only what curves read. */
function mergeVariants(rows: readonly StepRow[]): StepRow {
  const first = rows[0]!;
  const sum = (of: (row: StepRow) => number) => rows.reduce((total, row) => total + of(row), 0);
  const figures = { ...first.figures, canonical: {}, incomplete_groups: sum((row) => row.figures.incomplete_groups) };
  const whole: StepRow = {
    ...first,
    env_ids: rows.map(({ env_id }) => env_id),
    rollouts: sum((row) => row.rollouts),
    scored: sum((row) => row.scored),
    errors: sum((row) => row.errors),
    finished: sum((row) => row.finished),
    messages: sum((row) => row.messages),
    reward_sum: sum((row) => row.reward_sum),
    provenance: rows.map(({ provenance }) => provenance).reduce(weakerProvenance),
    figures,
  };
  if (!isWindow(first)) return whole;
  const windows = rows.filter(isWindow).map(({ window }) => window);
  const first_seq = String(Math.min(...windows.map((window) => Number(window.first_seq))));
  const last_seq = String(Math.max(...windows.map((window) => Number(window.last_seq))));
  return Object.assign(whole, { window: { ...first.window, first_seq, last_seq } });
}
