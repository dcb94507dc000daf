const MINUTE_S = 60;
const HOUR_S = 3_600;

/** Pauses before the second and each later attempt, seconds: about a day in all. */
const PAUSES_S = [5, 30, 2 * MINUTE_S, 10 * MINUTE_S, 30 * MINUTE_S, 2 * HOUR_S, 5 * HOUR_S, 8 * HOUR_S, 8 * HOUR_S];

/** Seconds until the next attempt after `tries` attempts; null when none follows. */
export const pauseAfter = (tries: number): number | null => PAUSES_S[tries - 1] ?? null;

/** Of the job that sends what is due: it waits for the regular one. */
export const DELIVER_NOW = { key: 'deliver-webhooks', serialKey: 'every:deliver-webhooks', maxAttempts: 1 };
