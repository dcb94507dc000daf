import type { RolloutState } from '@palestra/protocol';

/**
 * State of a rollout (docs/reference/metrics.md#messages). There is no end event, so it follows from the age of the last event. Ages in
 * milliseconds.
 */
export const LIVE_MS = 10_000;
export const STALE_MS = 600_000;

export function rolloutState(rollout: { messages: number; finished: boolean; lastEventAgeMs: number }): RolloutState {
  if (rollout.lastEventAgeMs < LIVE_MS && !rollout.finished) return 'live';
  if (rollout.messages === 0) return 'empty';
  if (rollout.finished) return 'complete';
  return rollout.lastEventAgeMs >= STALE_MS ? 'stale' : 'complete';
}
