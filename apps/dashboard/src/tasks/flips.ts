import { clusteredProportion, type Proportion } from '@palestra/metrics';
import type { TaskStrip } from '../data/insights.ts';

type Strip = Pick<TaskStrip, 'step' | 'solve' | 'scored'>;

/** A task is solved at a step if at least half of its scored rollouts succeed, as in the API's count of flips. */
export const solvedAt = (rate: number | null): boolean | null => (rate === null ? null : rate >= 0.5);

export interface Visit {
  step: number;
  rate: number;
}

/**
 * The scored visit of a task nearest to an end of the window `from` to `to`: tasks rotate, so few are visited at every step. Of two equally
 * near visits the one inside of the window. Null without any.
 */
export function visitNear(strip: Strip, end: number, [from, to]: readonly [number, number]): Visit | null {
  const isOutside = (step: number) => Number(step < from || step > to);
  const visits = strip.step.flatMap((step, i) => (strip.solve[i] === null ? [] : [{ step, rate: strip.solve[i]! }]));
  const [nearest] = visits.toSorted((a, b) => Math.abs(a.step - end) - Math.abs(b.step - end) || isOutside(a.step) - isOutside(b.step));
  return nearest ?? null;
}

export interface Change {
  /** `single`: one visit is the nearest to both ends; `none`: the task was never scored. */
  kind: 'gained' | 'lost' | 'same' | 'single' | 'none';
  before: Visit | null;
  after: Visit | null;
}

/** The change of a task between the visits nearest to the two ends of a window. */
export function changeBetween(strip: Strip, from: number, to: number): Change {
  const [before, after] = [visitNear(strip, from, [from, to]), visitNear(strip, to, [from, to])];
  if (before === null || after === null) return { kind: 'none', before, after };
  if (before.step === after.step) return { kind: 'single', before, after };
  const [was, is] = [solvedAt(before.rate), solvedAt(after.rate)];
  return { kind: was === is ? 'same' : is ? 'gained' : 'lost', before, after };
}

/** The solve rate over the visits inside of a window, clustered by visit (docs/reference/metrics.md). Null without a score. */
export function rateWithin(strip: Strip, from: number, to: number): Proportion | null {
  const visits = strip.step.flatMap((step, i) => {
    const [rate, scored] = [strip.solve[i] ?? null, strip.scored[i]!];
    return step < from || step > to || rate === null ? [] : [{ scored, successes: Math.round(rate * scored) }];
  });
  return clusteredProportion(visits);
}

export type Difficulty = 'Unsolved' | 'Hard' | 'Medium' | 'Easy' | 'Solved';

/** How hard a task is as far as the interval of its solve rate tells (docs/reference/metrics.md). */
export function difficultyOf({ rate, low, high }: Pick<Proportion, 'rate' | 'low' | 'high'>): Difficulty {
  if (rate === 0) return 'Unsolved';
  if (rate === 1) return 'Solved';
  if (high < 0.5) return 'Hard';
  return low > 0.5 ? 'Easy' : 'Medium';
}
