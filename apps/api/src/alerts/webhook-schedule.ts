const MINUTE_S = 60;
const HOUR_S = 3_600;

/** Pauses before the second and each later attempt, seconds: about a day in all. */
const PAUSES_S = [5, 30, 2 * MINUTE_S, 10 * MINUTE_S, 30 * MINUTE_S, 2 * HOUR_S, 5 * HOUR_S, 8 * HOUR_S, 8 * HOUR_S];

export interface NextAttempt {
  inS: number;
  /** Attempts that count as done before it: those that happened, and those that would have been earlier. */
  tries: number;
}

/**
 * The next attempt after `tries` attempts; null when none follows. `retryAfterS`: how long the receiver asked to wait. A longer wait takes the
 * place of the pauses that it covers, so that no message waits longer than all pauses together.
 */
export function nextAttempt(tries: number, retryAfterS: number): NextAttempt | null {
  const pauses = PAUSES_S.slice(tries - 1);
  if (pauses.length === 0) return null;
  const inS = Math.min(
    Math.max(pauses[0]!, retryAfterS),
    pauses.reduce((sum, pause) => sum + pause, 0),
  );
  let covered = 0;
  for (let untilS = pauses[0]!; untilS < inS; untilS += pauses[covered]!) covered += 1;
  return { inS, tries: tries + covered };
}

/** Of the job that sends what is due: it waits for the regular one. */
export const DELIVER_NOW = { key: 'deliver-webhooks', serialKey: 'every:deliver-webhooks', maxAttempts: 1 };
