import type { MessageType } from '@palestra/protocol';
import type { ReadMessage } from './event-reader.ts';
import { messageFlags } from './message-flags.ts';

/** The fields of a message that the normaliser reads. */
export interface MessageSkeleton {
  index: number;
  type: MessageType;
  name: string | null;
  callId: string | null;
  reward: number | null;
  isFinished: boolean;
  /** Bits of `messageFlags`. */
  flags: number;
  /** UTF-8 bytes of content and summary. */
  bytes: number;
  /** Milliseconds since the epoch; timestamp of the client. */
  sentAt: number;
}

/** `bytes`: UTF-8 bytes of content and summary. */
export function skeletonOf(event: ReadMessage, bytes: number): MessageSkeleton {
  const { index, type, name, callId, reward, isFinished, sentAt } = event;
  return { index, type, name, callId, reward, isFinished, flags: messageFlags(event), bytes, sentAt };
}

/**
 * Sorts the messages and removes repeats. Messages that share an index, which no client sends on purpose, are ordered by all other
 * fields, so that the result does not depend on the order of arrival.
 */
export function orderMessages(messages: readonly MessageSkeleton[]): MessageSkeleton[] {
  if (messages.every((message, at) => at === 0 || messages[at - 1]!.index < message.index)) return [...messages];
  const sorted = messages.toSorted(compare);
  return sorted.filter((message, at) => at === 0 || compare(sorted[at - 1]!, message) !== 0);
}

function compare(a: MessageSkeleton, b: MessageSkeleton): number {
  return (
    a.index - b.index ||
    a.sentAt - b.sentAt ||
    compareTexts(a.type, b.type) ||
    compareTexts(a.name, b.name) ||
    compareTexts(a.callId, b.callId) ||
    compareNumbers(a.reward, b.reward) ||
    Number(a.isFinished) - Number(b.isFinished) ||
    a.flags - b.flags ||
    a.bytes - b.bytes
  );
}

/** null sorts before every text. */
const compareTexts = (a: string | null, b: string | null): number => (a === b ? 0 : a === null || (b !== null && a < b) ? -1 : 1);
const compareNumbers = (a: number | null, b: number | null): number => (a === b ? 0 : a === null || (b !== null && a < b) ? -1 : 1);
