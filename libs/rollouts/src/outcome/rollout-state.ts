import type { RolloutState } from '@palestra/protocol';

/** State of a rollout (dashboard.md 2.6): there is no end event, so it is told from the last one's age. Ages in milliseconds. */
export const LIVE_MS = 10_000;
export const STALE_MS = 600_000;

export function rolloutState(rollout: { messages: number; finished: boolean; lastEventAgeMs: number }): RolloutState {
  if (rollout.lastEventAgeMs < LIVE_MS && !rollout.finished) return 'live';
  if (rollout.messages === 0) return 'empty';
  if (rollout.finished) return 'complete';
  return rollout.lastEventAgeMs >= STALE_MS ? 'stale' : 'complete';
}
