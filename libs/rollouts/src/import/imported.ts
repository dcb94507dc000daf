import { createHash } from 'node:crypto';
import type { JsonObject, MessageType, RolloutEvent, RolloutMessageEvent, RolloutStartEvent } from '@palestra/protocol';

/** The result of one record of a file: the upload events of its rollout, or why it could not be read. Other records continue. */
export type Imported = { where: string; events: RolloutEvent[] } | { where: string; problem: string };

export interface ImportOptions {
  /** The run of the imported rollouts. */
  runName: string;
  /** Milliseconds since the epoch for records without a time. Use a time of the file, so that a repeated import sends the same events. */
  at: number;
}

/** A message of an imported rollout. Its position in the list is its index. */
export interface DraftMessage {
  type: MessageType;
  content?: string;
  contentReference?: string;
  summary?: string;
  name?: string;
  callId?: string;
  reward?: number;
  /** Milliseconds since the epoch. */
  at?: number;
  metadata?: JsonObject;
}

/** A rollout of a foreign format, with the fields that the normaliser reads as reported (docs/reference/metrics.md#recommended-fields). */
export interface RolloutDraft {
  /** Identifies the record within its format: equal keys give equal ids. */
  key: readonly unknown[];
  start: Omit<RolloutStartEvent, 'eventType' | 'eventId' | 'timestamp' | 'runName'>;
  at?: number;
  messages: DraftMessage[];
  /** null: not scored. */
  reward: number | null;
  /** The episode ended by itself: it neither failed nor was cut. */
  finished: boolean;
}

/** The same UUID for the same parts: version 8 of RFC 9562 with the first bits of a SHA-256. */
export function importId(...parts: readonly unknown[]): string {
  const bytes = createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** SHA-256 in hex, for keys of records without a name. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * The upload events of a rollout. If no message has a reward, the total is on the last message, because a reported total of 0 without
 * message rewards means "not scored" (docs/reference/metrics.md#canonical-reward). The rollout id depends on the run, so that one file
 * can be imported into two runs.
 */
export function eventsOf(draft: RolloutDraft, { runName, at }: ImportOptions): [RolloutStartEvent, ...RolloutMessageEvent[]] {
  const rolloutId = importId('rollout', runName, ...draft.key);
  const time = draft.at ?? at;
  const rewarded = draft.messages.some(({ reward }) => reward !== undefined);
  const last = draft.messages.length - 1;
  const total = draft.reward === null ? {} : { reward_total: draft.reward };
  const start: RolloutStartEvent = {
    eventType: 'rollout',
    eventId: rolloutId,
    timestamp: time,
    runName,
    ...draft.start,
    metadata: { ...draft.start.metadata, ...total },
  };
  const messages = draft.messages.map(({ at: sentAt, metadata = {}, ...message }, index): RolloutMessageEvent => ({
    eventType: 'message',
    eventId: importId('message', rolloutId, index),
    rolloutEventId: rolloutId,
    timestamp: sentAt ?? time,
    index,
    ...message,
    ...(index === last && !rewarded && draft.reward !== null ? { reward: draft.reward } : {}),
    isFinished: index === last && draft.finished,
    metadata,
  }));
  return [start, ...messages];
}
