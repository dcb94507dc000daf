import { groupBy } from '@palestra/metrics';
import { weakerProvenance } from '../../store/figures/step-columns.ts';
import { isWindow, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** Of what a row is: all environments (0), or the environment of that name, which has an id for each of its variants. */
export const environmentOf = ({ env_id }: StepRow, names: ReadonlyMap<number, string | null>): string | null | 0 =>
  env_id === 0 ? 0 : (names.get(env_id) ?? null);

/** One row a step, phase and environment, whatever its variants, in the order of `rows`. Figures of several variants together are to be made (`withFigures`). */
export function rowsOfEnvironments(rows: readonly StepRow[], names: ReadonlyMap<number, string | null>): StepRow[] {
  const places = groupBy(rows, (row) => JSON.stringify([row.phase, row.step, environmentOf(row, names)]));
  return [...places.values()].map((own) => (own.length === 1 ? own[0]! : together(own)));
}

/** Of the figures only what is counted for curves. */
function together(rows: readonly StepRow[]): StepRow {
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
