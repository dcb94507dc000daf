import type { TaskStrip } from '../data/insights.ts';

/** A task is solved at a step if at least half of its scored rollouts succeed, as in the API's count of flips. */
export const solvedAt = (rate: number | null): boolean | null => (rate === null ? null : rate >= 0.5);

/** The solve rate of a task at its last scored step up to `step`; null if there is none. */
export function rateUpTo(strip: Pick<TaskStrip, 'step' | 'solve'>, step: number): number | null {
  for (let i = strip.step.length - 1; i >= 0; i -= 1) if (strip.step[i]! <= step && strip.solve[i] !== null) return strip.solve[i]!;
  return null;
}

export type Change = 'gained' | 'lost' | 'same' | 'unknown';

/** The change of a task between two steps, each read at the last scored step up to it. */
export function changeBetween(strip: Pick<TaskStrip, 'step' | 'solve'>, from: number, to: number): Change {
  const before = solvedAt(rateUpTo(strip, from));
  const after = solvedAt(rateUpTo(strip, to));
  if (before === null || after === null) return 'unknown';
  if (before === after) return 'same';
  return after ? 'gained' : 'lost';
}
