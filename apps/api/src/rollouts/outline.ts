import { MESSAGE_FLAGS, type MessageSkeleton, missingRanges } from '@palestra/rollouts';

/**
 * Columns of a rollout's messages: 10 000 messages take about 400 kB. `durations`: latency of calls from the ledger, by message index,
 * milliseconds.
 */
export function outlineOf(messages: readonly MessageSkeleton[], durations: ReadonlyMap<number, number | null>) {
  const types = new Dictionary();
  const names = new Dictionary();
  const pair = pairedIndexes(messages);
  return {
    total: messages.length,
    index: messages.map(({ index }) => index),
    type: messages.map(({ type }) => types.of(type)),
    name: messages.map(({ name }) => (name === null ? null : names.of(name))),
    reward: messages.map(({ reward }) => reward),
    bytes: messages.map(({ bytes }) => bytes),
    error: messages.map(({ flags }) => errorOf(flags)),
    duration_ms: messages.map(({ type, index }) => (type === 'tool_call' ? (durations.get(index) ?? null) : null)),
    pair,
    missing: missingRanges(messages.map(({ index }) => index)),
    types: types.words,
    names: names.words,
  };
}

const errorOf = (flags: number): number =>
  (flags & MESSAGE_FLAGS.error ? 1 : 0) | (flags & MESSAGE_FLAGS.parseError ? 2 : 0) | (flags & MESSAGE_FLAGS.nudge ? 4 : 0);

/** The index of each call's result, and of each result's call: a result belongs to the latest call with its id. */
function pairedIndexes(messages: readonly MessageSkeleton[]): (number | null)[] {
  const pair: (number | null)[] = messages.map(() => null);
  const calls = new Map<string, number>();
  messages.forEach(({ type, callId }, at) => {
    if (callId === null) return;
    if (type === 'tool_call') calls.set(callId, at);
    const call = type === 'tool_result' ? calls.get(callId) : undefined;
    if (call === undefined) return;
    pair[at] = call;
    pair[call] ??= at;
  });
  return pair;
}

/** Codes of words, in the order of their first use. */
class Dictionary {
  readonly words: string[] = [];
  readonly #codes = new Map<string, number>();

  of(word: string): number {
    const known = this.#codes.get(word);
    if (known !== undefined) return known;
    this.#codes.set(word, this.words.length);
    return this.words.push(word) - 1;
  }
}

/** Whether the message times are those of the upload: then all messages have nearly the same time, less than 5 ms per message. */
export function timeKind(messages: readonly MessageSkeleton[]): 'live' | 'upload' {
  const times = messages.map(({ sentAt }) => sentAt);
  const span = times.reduce((a, b) => Math.max(a, b), -Infinity) - times.reduce((a, b) => Math.min(a, b), Infinity);
  return messages.length === 0 || span < 5 * messages.length ? 'upload' : 'live';
}
