import { createHash } from 'node:crypto';
import type { JsonObject, MessageType, RolloutEvent, RolloutMessageEvent, RolloutStartEvent } from '@palestra/protocol';

/** What came of one record of a foreign file: the upload events of its rollout, or why it could not be read. The others go on. */
export type Imported = { where: string; events: RolloutEvent[] } | { where: string; problem: string };

export interface ImportOptions {
  /** The run that the rollouts are grouped into. */
  runName: string;
  /** Milliseconds since the epoch for records that carry no time; a file's own, so that importing it again sends the same. */
  at: number;
}

/** A message of an imported rollout; its index is its place in the list. */
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

/** A rollout of a foreign format, in the fields that the normaliser reads as reported (dashboard.md 2.8). */
export interface RolloutDraft {
  /** Identifies the record within its format: equal keys make equal ids. */
  key: readonly unknown[];
  start: Omit<RolloutStartEvent, 'eventType' | 'eventId' | 'timestamp' | 'runName'>;
  at?: number;
  messages: DraftMessage[];
  /** Null = not scored. */
  reward: number | null;
  /** The episode came to its own end: neither failed nor cut short. */
  finished: boolean;
}

/** The same UUID for the same parts, always: version 8 of RFC 9562 with the first bits of a SHA-256. */
export function importId(...parts: readonly unknown[]): string {
  const bytes = createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** SHA-256 in hex, for keys of records that have no name of their own. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * The upload events of a rollout. The total stands on its last message when no message has a reward of its own: a reported total
 * of 0 without any would be read as "not scored" (dashboard.md 14.2). A rollout id depends on the run, so that one file can be
 * imported into two runs.
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
