import type { LedgerCall } from './ledger-alignment.ts';

/** The rewards that an upload reports. */
export interface ClaimedRewards {
  /** Total in the metadata; null without one. */
  reported: number | null;
  /** Its tool results: the reward, and that of the call of the session; null without one. */
  calls: readonly { reward: number | null; recorded: number | null }[];
}

/** Rewards pass through single precision at trainers. */
const TOLERANCE = 1e-6;

/**
 * Whether the rewards of an upload are no score but what the episode had earned until infrastructure ended it
 * (docs/adr/0016-verified-rollouts.md): the last call of the session failed by infrastructure, no call ended the episode, and the upload
 * reports no reward that the session did not give.
 */
export function isInterruptedScore(claimed: ClaimedRewards, calls: readonly LedgerCall[]): boolean {
  if (calls.at(-1)?.failureClass !== 'infrastructure' || calls.some(({ finished }) => finished)) return false;
  const earned = [totalOf(calls), totalOf(claimed.calls)];
  return (
    claimed.calls.every(({ reward, recorded }) => isNone(reward) || isEqual(reward, recorded ?? 0)) &&
    (isNone(claimed.reported) || earned.some((total) => isEqual(claimed.reported!, total)))
  );
}

const isNone = (reward: number | null): reward is null | 0 => reward === null || reward === 0;
const isEqual = (one: number, other: number): boolean => Math.abs(one - other) <= TOLERANCE * Math.max(1, Math.abs(other));
const totalOf = (calls: readonly { reward: number | null }[]): number => calls.reduce((total, { reward }) => total + (reward ?? 0), 0);
