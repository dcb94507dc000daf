import { type FailureCause, failureCause, failurePoint, type MessageSkeleton, type NormalisedRollout } from '@palestra/rollouts';
import type { TranscriptReader } from '../storage/transcript-reader.service.ts';
import type { DirtyHead } from './derive.sql.ts';

interface Derived {
  head: Pick<DirtyHead, 'seq' | 'day' | 'sealed' | 'start' | 'rollout_info'>;
  rollout: Pick<NormalisedRollout, 'stop' | 'failureClass'>;
  messages: readonly MessageSkeleton[];
}

/** Why these rollouts failed, by `seq`; the others are absent. Reads at most one message of each. */
export async function failureCauses(transcripts: TranscriptReader, derived: readonly Derived[]): Promise<Map<string, FailureCause>> {
  const failed = derived.flatMap(({ head, rollout: { stop, failureClass }, messages }) => {
    const point = failurePoint({ stop, failureClass, rolloutInfo: head.rollout_info ?? {}, start: head.start, messages });
    return point === null ? [] : [{ head, point }];
  });
  const errors = failed.flatMap(({ head, point: { error } }) => (error === null ? [] : [{ ...head, index: error.index }]));
  const texts = errors.length === 0 ? new Map<string, never>() : await transcripts.errors(errors);
  return new Map(failed.map(({ head: { seq }, point }) => [seq, failureCause(point, texts.get(seq) ?? null)]));
}
