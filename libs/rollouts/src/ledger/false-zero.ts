import type { LedgerCall } from './ledger-alignment.ts';

/** What an upload says about reward, before anything else is known of it. */
export interface ClaimedRewards {
  /** Total in the metadata; null without one. */
  reported: number | null;
  /** Of its tool results. */
  ofCalls: readonly (number | null)[];
}

/**
 * Whether a reward of 0 is no score but the trace of a failure that is not the policy's (docs/adr/0016): the last call of the session
 * failed by infrastructure, no call ended the episode, and the upload claims nothing else than 0. A claim of anything else stands.
 */
export function isFalseZero(claimed: ClaimedRewards, calls: readonly LedgerCall[]): boolean {
  if (calls.at(-1)?.failureClass !== 'infrastructure' || calls.some(({ finished }) => finished)) return false;
  return [claimed.reported, ...claimed.ofCalls].every((reward) => reward === null || reward === 0);
}
