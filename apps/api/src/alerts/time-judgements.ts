import type { AlertEvidence, CountCondition, SilenceCondition } from '@palestra/protocol';
import type { Judgement } from './alert-state.ts';
import { inEnvironment } from './alert-text.ts';
import { environmentClause } from './step-judgements.ts';

const MINUTE_MS = 60_000;

/** The query of the rollouts that count. */
export const countedQuery = ({ q, environment }: CountCondition): string => [`(${q})`, ...environmentClause(environment)].join(' ');

/** `count`: matching rollouts of the window that ends at `at`; null = now. */
export function judgeCount(condition: CountCondition, count: number, at: number | null): Judgement {
  const { q, minutes, value } = condition;
  const rollouts = count === 1 ? '1 rollout' : `${count} rollouts`;
  const evidence = evidenceOf(
    `${rollouts} of ${q}${inEnvironment(condition)} within ${minutes} min.`,
    count,
    value,
    `${countedQuery(condition)} received:${minutes}m`,
  );
  return { step: null, at, holds: count > value, evidence };
}

/** `quietMs`: since the last event of the run, or of its environment. */
export function judgeSilence(condition: SilenceCondition, quietMs: number, at: number | null): Judgement {
  const { minutes } = condition;
  const quiet = Math.max(0, Math.floor(quietMs / MINUTE_MS));
  const holds = quietMs >= minutes * MINUTE_MS;
  const text = holds ? `No rollout${inEnvironment(condition)} for ${quiet} min.` : 'Rollouts arrive again.';
  return { step: null, at, holds, evidence: evidenceOf(text, quiet, minutes, null) };
}

/** Of a run that is marked as finished, whose silence is no stall. */
export function judgeFinished({ minutes }: SilenceCondition): Judgement {
  return { step: null, at: null, holds: false, evidence: evidenceOf('The run is finished.', null, minutes, null) };
}

function evidenceOf(text: string, value: number | null, threshold: number, q: string | null): AlertEvidence {
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

/** A time without an event of the run. */
export interface Pause {
  from: number;
  to: number;
  /** It lasts: `to` is now. */
  lasts?: boolean;
}

/** What `judgeSilence` would have found. `pauses`: in the order of time. */
export function silenceHistory(condition: SilenceCondition, pauses: readonly Pause[]): Judgement[] {
  const windowMs = condition.minutes * MINUTE_MS;
  return pauses
    .filter(({ from, to }) => to - from >= windowMs)
    .flatMap(({ from, to, lasts }) => [
      judgeSilence(condition, windowMs, from + windowMs),
      ...(lasts === true ? [] : [judgeSilence(condition, 0, to)]),
    ]);
}
