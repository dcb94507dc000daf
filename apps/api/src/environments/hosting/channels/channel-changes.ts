import { PalestraError } from '@palestra/protocol';
import type { ChannelChange, ChannelRecord } from './channel.repository.ts';

type Stored = Pick<ChannelRecord, 'versionId' | 'previousVersionId' | 'canaryVersionId'>;
type Change = ChannelChange & { versionId: string; reason: string };

/** The channel follows `versionId`, or sends it a share of the new sessions. Throws `invalid_request`. */
export function promoted(stored: Stored | null, versionId: string, percent: number, reason: string): Change {
  if (percent === 100) {
    const previousVersionId = stored === null || stored.versionId === versionId ? (stored?.previousVersionId ?? null) : stored.versionId;
    return { versionId, previousVersionId, canaryVersionId: null, canaryPercent: 0, reason };
  }
  if (stored === null)
    throw new PalestraError('invalid_request', {
      detail: 'percent: the channel has no version beside which another one could get a share.',
    });
  if (stored.versionId === versionId)
    throw new PalestraError('invalid_request', { detail: 'percent: the channel follows this version already.' });
  const { previousVersionId } = stored;
  return { versionId: stored.versionId, previousVersionId, canaryVersionId: versionId, canaryPercent: percent, reason };
}

/** Ends a canary, or returns to the version before. Doing it twice does not return to the version that was left. */
export function rolledBack(stored: Stored | null, reason: string): Change {
  if (stored === null) throw new PalestraError('channel_not_found');
  if (stored.canaryVersionId !== null) return withoutCanary(stored, reason);
  if (stored.previousVersionId === null)
    throw new PalestraError('invalid_request', {
      detail: 'The channel had no other version before. Promote the version that it must follow.',
    });
  return { versionId: stored.previousVersionId, previousVersionId: null, canaryVersionId: null, canaryPercent: 0, reason };
}

export const withoutCanary = ({ versionId, previousVersionId }: Stored, reason: string): Change => ({
  versionId,
  previousVersionId,
  canaryVersionId: null,
  canaryPercent: 0,
  reason,
});
