import type { RolloutMessageView } from '@palestra/protocol';

/** One row of the transcript. `anchor` is the message index that `#m-<index>` points at. */
export type TranscriptItem =
  | { kind: 'message'; anchor: number; turn: number | null; message: RolloutMessageView }
  | { kind: 'call'; anchor: number; turn: number; call: RolloutMessageView | null; result: RolloutMessageView | null }
  | { kind: 'gap'; anchor: number; from: number; to: number };

const isAction = (type: RolloutMessageView['type']) => type === 'reasoning' || type === 'assistant_message' || type === 'tool_call';

/** Indexes that never arrived, as ranges. */
function gapsOf(missing: number[]): { from: number; to: number }[] {
  const ranges: { from: number; to: number }[] = [];
  for (const index of missing.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && index === last.to + 1) last.to = index;
    else ranges.push({ from: index, to: index });
  }
  return ranges;
}

/** The result of each call: the first later one of its callId (ids may repeat), or the next one when there are no ids. */
function pairResults(messages: RolloutMessageView[]): Map<RolloutMessageView, RolloutMessageView> {
  const pairs = new Map<RolloutMessageView, RolloutMessageView>();
  const waiting: RolloutMessageView[] = [];
  for (const message of messages) {
    if (message.type === 'tool_call') waiting.push(message);
    if (message.type !== 'tool_result') continue;
    const at = waiting.findIndex((call) => call.callId === message.callId);
    if (at === -1) continue;
    pairs.set(waiting[at]!, message);
    waiting.splice(at, 1);
  }
  return pairs;
}

/**
 * Rows in the order of the indexes: a call and its result are one row at the place of the call, a result without a call is a
 * row of its own, and missing indexes are shown where they are missing. A turn is a run of reasoning, assistant text and
 * calls between results or user messages (dashboard.md 2.3).
 */
export function buildTranscript(unordered: RolloutMessageView[], missing: number[]): TranscriptItem[] {
  const messages = unordered.toSorted((a, b) => a.index - b.index);
  const pairs = pairResults(messages);
  const paired = new Set(pairs.values());
  const gaps = gapsOf(missing);
  const items: TranscriptItem[] = [];
  let turn = 0;
  let acting = false;
  for (const message of messages) {
    while (gaps[0] && gaps[0].from < message.index) {
      const gap = gaps.shift()!;
      items.push({ kind: 'gap', anchor: gap.from, ...gap });
    }
    const acts = isAction(message.type);
    if (acts && !acting) turn += 1;
    acting = acts || (message.type === 'tool_result' ? false : acting && message.type === 'system_message');
    if (message.type === 'tool_call')
      items.push({ kind: 'call', anchor: message.index, turn, call: message, result: pairs.get(message) ?? null });
    else if (message.type === 'tool_result') {
      if (!paired.has(message)) items.push({ kind: 'call', anchor: message.index, turn, call: null, result: message });
    } else items.push({ kind: 'message', anchor: message.index, turn: acts ? turn : null, message });
  }
  for (const gap of gaps) items.push({ kind: 'gap', anchor: gap.from, ...gap });
  return items;
}

export function rewardOf(item: TranscriptItem): number | null {
  if (item.kind === 'gap') return null;
  return item.kind === 'call' ? (item.result?.reward ?? item.call?.reward ?? null) : item.message.reward;
}

export function isFinished(item: TranscriptItem): boolean {
  if (item.kind === 'gap') return false;
  return item.kind === 'call' ? Boolean(item.result?.isFinished || item.call?.isFinished) : item.message.isFinished;
}

/** The row that decided the reward: the scored one with the largest size, the last of equals; -1 without any. */
export function decisiveIndex(items: TranscriptItem[]): number {
  let best = -1;
  let size = 0;
  items.forEach((item, i) => {
    const reward = Math.abs(rewardOf(item) ?? 0);
    if (reward > 0 && reward >= size) [best, size] = [i, reward];
  });
  return best;
}

/** The row that shows message `index` (a result is shown by its call's row). */
export function rowOfMessage(items: TranscriptItem[], index: number): number {
  return items.findIndex((item) =>
    item.kind === 'gap'
      ? item.from <= index && index <= item.to
      : item.kind === 'call'
        ? item.call?.index === index || item.result?.index === index
        : item.anchor === index,
  );
}

/** Arguments of a call for the aligned view, or null when the content is not a JSON object. */
export function argumentsOf(call: RolloutMessageView): [string, string][] | null {
  if (!call.content || call.content.length > 1_000_000) return null;
  try {
    const value: unknown = JSON.parse(call.content);
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
    return Object.entries(value).map(([key, argument]) => [key, typeof argument === 'string' ? argument : JSON.stringify(argument)]);
  } catch {
    return null;
  }
}

/** Assistant text without the `<tool_call>` blocks that some trainers repeat in it; the calls have rows of their own. */
export const withoutRepeatedCalls = (text: string): string => text.replace(/<tool_call>[\s\S]*?(<\/tool_call>|$)/g, '').trim();

/** A nudge or parse error that the trainer wrote in the user's name (dashboard.md 2.6). */
export const isNudge = (text: string): boolean =>
  text === 'No tool call detected. Please use the provided tools to complete the task.' || text.startsWith('Tool call parse error:');
