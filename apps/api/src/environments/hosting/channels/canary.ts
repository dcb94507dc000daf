import { createHash } from 'node:crypto';

/** Whether a session belongs to the share of a canary. By its SID, so that a repeated request opens the same version. */
export const isOfCanary = (sid: string, percent: number): boolean =>
  createHash('sha256').update(sid).digest().readUInt32BE(0) % 100 < percent;

/** Ended sessions of a version: how many, of them those that failed for no fault of the policy, and those that ended without a reward. */
export interface EndedSessions {
  ended: number;
  failed: number;
  unscored: number;
}

/** Ended sessions of the canary that are needed for a judgement. */
export const LEAST_ENDED = 20;
const MOST_SHARE = 0.2;

const share = (count: number, of: number): number => (of === 0 ? 0 : count / of);
const percentText = (part: number): string => `${Math.round(100 * part)} %`;

/** Why the canary is rolled back; null while it is not. */
export function canaryFault(canary: EndedSessions, stable: EndedSessions): string | null {
  if (canary.ended < LEAST_ENDED) return null;
  const faults = [
    ['failed', 'failed because of the environment or the infrastructure'],
    ['unscored', 'ended without a reward'],
  ] as const;
  for (const [kind, text] of faults) {
    const [ours, theirs] = [share(canary[kind], canary.ended), share(stable[kind], stable.ended)];
    if (ours <= MOST_SHARE || ours <= theirs) continue;
    return `${canary[kind]} of its last ${canary.ended} sessions (${percentText(ours)}) ${text}; of the version beside it ${percentText(theirs)}`;
  }
  return null;
}
