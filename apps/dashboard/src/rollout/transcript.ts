import type { RolloutOutline } from '@palestra/protocol';

/**
 * One row of the transcript, built from the outline. `at`, `call` and `result` are positions in the outline's columns. `anchor` is the
 * message index of the link `#m-<index>`.
 */
export type TranscriptItem =
  | { kind: 'message'; anchor: number; turn: number | null; at: number; type: string }
  | { kind: 'call'; anchor: number; turn: number; call: number | null; result: number | null }
  | { kind: 'gap'; anchor: number; from: number; to: number };

/** Bits of the outline's `error` column. */
export const OUTLINE_ERROR = 1;
export const OUTLINE_PARSE_ERROR = 2;
export const OUTLINE_NUDGE = 4;

const isAction = (type: string) => type === 'reasoning' || type === 'assistant_message' || type === 'tool_call';
export const typeAt = (outline: RolloutOutline, at: number): string => outline.types[outline.type[at]!] ?? '';
export const nameAt = (outline: RolloutOutline, at: number | null): string | null => {
  const name = at === null ? null : outline.name[at];
  return name === null || name === undefined ? null : (outline.names[name] ?? null);
};

/**
 * Rows in the order of the indexes. A call and its result are one row at the position of the call. A result without a call and a range
 * of missing indexes are rows too. A turn is a run of reasoning, assistant text and calls between results or user messages
 * (docs/reference/metrics.md#fill-rules).
 */
export function buildTranscript(outline: RolloutOutline): TranscriptItem[] {
  const gaps = [...outline.missing];
  const items: TranscriptItem[] = [];
  let turn = 0;
  let acting = false;
  const gapBefore = (index: number) => {
    while (gaps[0] && gaps[0][0] < index) {
      const [from, to] = gaps.shift()!;
      items.push({ kind: 'gap', anchor: from, from, to });
    }
  };
  for (let at = 0; at < outline.total; at += 1) {
    const anchor = outline.index[at]!;
    const type = typeAt(outline, at);
    const pair = outline.pair[at] ?? null;
    gapBefore(anchor);
    const acts = isAction(type);
    if (acts && !acting) turn += 1;
    acting = acts || (acting && type === 'system_message');
    if (type === 'tool_call') items.push({ kind: 'call', anchor, turn, call: at, result: pair });
    else if (type === 'tool_result') {
      // Only the first result of a call is in the card of the call.
      if (pair === null || outline.pair[pair] !== at) items.push({ kind: 'call', anchor, turn, call: null, result: at });
    } else items.push({ kind: 'message', anchor, turn: acts ? turn : null, at, type });
  }
  gapBefore(Infinity);
  return items;
}

/** Adds durations that the ledger received after the outline was read. Returns the same outline if there are none. */
export function withDurations(outline: RolloutOutline, calls: readonly { index: number; duration_ms: number | null }[]): RolloutOutline {
  const ledgerDurations = new Map(calls.map(({ index, duration_ms }) => [index, duration_ms]));
  const durationAt = (at: number) => (typeAt(outline, at) === 'tool_call' ? (ledgerDurations.get(outline.index[at]!) ?? null) : null);
  const isNew = (before: number | null, at: number) => before === null && durationAt(at) !== null;
  if (ledgerDurations.size === 0 || !outline.duration_ms.some(isNew)) return outline;
  return { ...outline, duration_ms: outline.duration_ms.map((before, at) => before ?? durationAt(at)) };
}

/** The reward of the result, else of the call or the message. */
export function rewardOf(outline: RolloutOutline, item: TranscriptItem): number | null {
  if (item.kind === 'gap') return null;
  if (item.kind === 'message') return outline.reward[item.at] ?? null;
  return (item.result === null ? null : outline.reward[item.result]) ?? (item.call === null ? null : outline.reward[item.call]) ?? null;
}

/** Error bits of the call and its result. */
export function errorOf(outline: RolloutOutline, item: TranscriptItem): number {
  if (item.kind === 'gap') return 0;
  const at = (position: number | null) => (position === null ? 0 : (outline.error[position] ?? 0));
  return item.kind === 'message' ? at(item.at) : at(item.call) | at(item.result);
}

/** The row with the largest absolute reward, the last one of equals; -1 if no row has a reward. */
export function decisiveRow(outline: RolloutOutline, items: readonly TranscriptItem[]): number {
  let best = -1;
  let size = 0;
  items.forEach((item, i) => {
    const reward = Math.abs(rewardOf(outline, item) ?? 0);
    if (reward > 0 && reward >= size) [best, size] = [i, reward];
  });
  return best;
}

/** The row that shows message `index` (a result is shown by its call's row), or -1. */
export function rowOfMessage(outline: RolloutOutline, items: readonly TranscriptItem[], index: number): number {
  return items.findIndex((item) => {
    if (item.kind === 'gap') return item.from <= index && index <= item.to;
    if (item.kind === 'message') return item.anchor === index;
    return item.anchor === index || (item.result !== null && outline.index[item.result] === index);
  });
}

/** The row of each message index. For a repeated index it is the first row. */
export function rowsByIndex(outline: RolloutOutline, items: readonly TranscriptItem[]): ReadonlyMap<number, number> {
  const rows = new Map<number, number>();
  const put = (index: number | undefined, row: number) => index !== undefined && !rows.has(index) && rows.set(index, row);
  items.forEach((item, row) => {
    put(item.anchor, row);
    if (item.kind === 'call' && item.result !== null) put(outline.index[item.result], row);
  });
  return rows;
}

/** Rows where `j` and `k` stop: the first action of each turn, and every message that is not the model's. */
export function turnStarts(items: readonly TranscriptItem[]): number[] {
  let last: number | null = null;
  return items.flatMap((item, row) => {
    const turn = item.kind === 'gap' ? null : item.turn;
    const starts = turn === null || turn !== last;
    last = turn;
    return starts ? [row] : [];
  });
}

/** The nearest row before or after `from` that starts a turn; undefined if there is none. */
export function nextTurn(items: readonly TranscriptItem[], from: number, step: 1 | -1): number | undefined {
  const starts = turnStarts(items);
  return step > 0 ? starts.find((row) => row > from) : starts.findLast((row) => row < from);
}

/** A reward counts as deciding from this part of the largest one on. */
const DECIDING = 0.25;

/**
 * The row with the mark of the deciding reward: that of the largest one, unless it is a gain of a rollout that failed all the same, because
 * then the failure decided. -1 without one.
 */
export function markedRow(outline: RolloutOutline, items: readonly TranscriptItem[], failed: boolean): number {
  const row = decisiveRow(outline, items);
  return failed && row >= 0 && (rewardOf(outline, items[row]!) ?? 0) > 0 ? -1 : row;
}

/** The nearest row before or after `from` with an error, a deciding reward, or at `end`, where it failed; undefined without such a row. */
export function nextMarked(
  outline: RolloutOutline,
  items: readonly TranscriptItem[],
  from: number,
  step: 1 | -1,
  end = -1,
): number | undefined {
  const sizeOf = (item: TranscriptItem | undefined) => (item ? Math.abs(rewardOf(outline, item) ?? 0) : 0);
  const least = DECIDING * sizeOf(items[decisiveRow(outline, items)]);
  for (let row = from + step; row >= 0 && row < items.length; row += step) {
    const size = sizeOf(items[row]);
    if (row === end || (size > 0 && size >= least) || errorOf(outline, items[row]!) !== 0) return row;
  }
  return undefined;
}

/** First and last outline position of the rows `from`..`to`. */
export function positionsOf(items: readonly TranscriptItem[], from: number, to: number): [first: number, last: number] {
  let [first, last] = [Infinity, -1];
  for (let row = from; row <= to; row += 1) {
    const item = items[row];
    if (!item || item.kind === 'gap') continue;
    for (const at of item.kind === 'message' ? [item.at] : [item.call, item.result]) {
      if (at === null) continue;
      first = Math.min(first, at);
      last = Math.max(last, at);
    }
  }
  return last < 0 ? [0, 0] : [first, last];
}

/** Estimated height of a row before it is measured, in pixels. */
export function estimateHeight(outline: RolloutOutline, item: TranscriptItem): number {
  if (item.kind === 'gap') return 38;
  const lines = (bytes: number, width: number, most: number) => Math.max(1, Math.min(most, Math.ceil(bytes / width)));
  if (item.kind === 'message') {
    if (item.type === 'reasoning') return 36;
    const bytes = outline.bytes[item.at] ?? 0;
    return item.type === 'system_message' && bytes > 240 ? 36 : 16 + 23 * lines(bytes, 68, 24);
  }
  const call = item.call === null ? 0 : 14 + 18 * lines(outline.bytes[item.call] ?? 0, 40, 8);
  const result = item.result === null ? 0 : 17 + 18 * lines(outline.bytes[item.result] ?? 0, 90, 24);
  return 48 + call + result;
}

/** Assistant text without the `<tool_call>` blocks that some trainers repeat in it: the calls have their own rows. */
export const withoutRepeatedCalls = (text: string): string => text.replace(/<tool_call>[\s\S]*?(<\/tool_call>|$)/g, '').trim();

/** Whether a user message was written by the trainer: a nudge or a parse error (docs/reference/metrics.md#messages). */
export const isNudge = (text: string): boolean =>
  text === 'No tool call detected. Please use the provided tools to complete the task.' || text.startsWith('Tool call parse error:');
