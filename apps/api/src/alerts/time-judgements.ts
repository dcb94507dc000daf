import type { AlertEvidence, CountCondition, SilenceCondition } from '@palestra/protocol';
import type { Judgement } from './alert-state.ts';

const MINUTE_MS = 60_000;

/** `count`: matching rollouts of the window that ends at `at`; null = now. */
export function judgeCount(condition: CountCondition, count: number, at: number | null): Judgement {
  const { q, minutes, value } = condition;
  const rollouts = count === 1 ? '1 rollout' : `${count} rollouts`;
  const evidence = evidenceOf(`${rollouts} of ${q} within ${minutes} min.`, count, value, `(${q}) received:${minutes}m`);
  return { step: null, at, holds: count > value, evidence };
}

/** `quietMs`: since the last event of the run. */
export function judgeSilence({ minutes }: SilenceCondition, quietMs: number, at: number | null): Judgement {
  const quiet = Math.max(0, Math.floor(quietMs / MINUTE_MS));
  const holds = quietMs >= minutes * MINUTE_MS;
  const text = holds ? `No rollout for ${quiet} min.` : 'Rollouts arrive again.';
  return { step: null, at, holds, evidence: evidenceOf(text, quiet, minutes, null) };
}

function evidenceOf(text: string, value: number, threshold: number, q: string | null): AlertEvidence {
  return { text, value, threshold, n: null, low: null, high: null, from_step: null, step: null, q, baseline: null };
}

/**
 * What `judgeCount` would have found over time. `arrivals`: of the matching rollouts, ascending. The count of a window only falls between
 * arrivals, so the moments before and at each arrival show every change.
 */
export function countHistory(condition: CountCondition, arrivals: readonly number[]): Judgement[] {
  const width = condition.minutes * MINUTE_MS;
  const judgements: Judgement[] = [];
  let first = 0;
  for (const [at, arrival] of arrivals.entries()) {
    while (arrivals[first]! <= arrival - width) first += 1;
    judgements.push(judgeCount(condition, at - first, arrival), judgeCount(condition, at - first + 1, arrival));
  }
  return judgements;
}

/** What `judgeSilence` would have found. `pauses`: between events of the run, in the order of time. */
export function silenceHistory(condition: SilenceCondition, pauses: readonly { from: number; to: number }[]): Judgement[] {
  return pauses
    .filter(({ from, to }) => to - from >= condition.minutes * MINUTE_MS)
    .flatMap(({ from, to }) => [
      judgeSilence(condition, condition.minutes * MINUTE_MS, from + condition.minutes * MINUTE_MS),
      judgeSilence(condition, 0, to),
    ]);
}
