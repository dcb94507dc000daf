import type { LedgerCall } from './ledger-alignment.ts';

/** The rewards that an upload reports. */
export interface ClaimedRewards {
  /** Total in the metadata; null without one. */
  reported: number | null;
  /** Rewards of its tool results. */
  ofCalls: readonly (number | null)[];
}

/**
 * Whether a reward of 0 is not a score but the result of a failure (docs/adr/0016-verified-rollouts.md): the last call of the session
 * failed by infrastructure, no call ended the episode, and the upload reports no reward other than 0.
 */
export function isFalseZero(claimed: ClaimedRewards, calls: readonly LedgerCall[]): boolean {
  if (calls.at(-1)?.failureClass !== 'infrastructure' || calls.some(({ finished }) => finished)) return false;
  return [claimed.reported, ...claimed.ofCalls].every((reward) => reward === null || reward === 0);
}
