import type { TaskStrip } from '../data/insights.ts';

/** A task counts as solved where at least half of its scored rollouts are successes (as the API counts flips). */
export const solvedAt = (rate: number | null): boolean | null => (rate === null ? null : rate >= 0.5);

/** The solve rate of a task at its last step up to `step`; null when it was not scored until then. */
export function rateUpTo(strip: Pick<TaskStrip, 'step' | 'solve'>, step: number): number | null {
  for (let i = strip.step.length - 1; i >= 0; i -= 1) if (strip.step[i]! <= step && strip.solve[i] !== null) return strip.solve[i]!;
  return null;
}

export type Change = 'gained' | 'lost' | 'same' | 'unknown';

/** What became of a task between two steps, each read at the last time that it was tried until then. */
export function changeBetween(strip: Pick<TaskStrip, 'step' | 'solve'>, from: number, to: number): Change {
  const before = solvedAt(rateUpTo(strip, from));
  const after = solvedAt(rateUpTo(strip, to));
  if (before === null || after === null) return 'unknown';
  if (before === after) return 'same';
  return after ? 'gained' : 'lost';
}
