import { canonicalArgsHash, MESSAGE_FLAGS } from '@palestra/rollouts';
import type { StoredMessageRow } from '../store/storage/transcript-reader.service.ts';

export interface Action {
  /** Of its message. */
  index: number;
  kind: 'call' | 'answer';
  tool: string | null;
  /** Its result is an error. */
  error: boolean;
  /** Of its result. */
  reward: number | null;
  /** The same for the same behaviour. */
  hash: string;
}

/** What the policy did: each call with its outcome, and what it said at the end. `messages` in order. */
export function actionsOf(messages: readonly StoredMessageRow[]): Action[] {
  const actions: Action[] = [];
  const byCall = new Map<string, Action>();
  for (const { index, type, name, content, call_id, flags, reward } of messages) {
    if (type === 'tool_call') {
      const action: Action = {
        index,
        kind: 'call',
        tool: name,
        error: false,
        reward: null,
        hash: `${name}\n${canonicalArgsHash(content)}`,
      };
      actions.push(action);
      if (call_id !== null) byCall.set(call_id, action);
    }
    const call = type === 'tool_result' && call_id !== null ? byCall.get(call_id) : undefined;
    if (call) Object.assign(call, { error: call.error || (flags & MESSAGE_FLAGS.error) !== 0, reward: reward ?? call.reward });
  }
  const last = messages.findLast(({ type }) => type === 'assistant_message' || type === 'tool_call');
  if (last?.type === 'assistant_message')
    actions.push({
      index: last.index,
      kind: 'answer',
      tool: null,
      error: false,
      reward: last.reward,
      hash: `answer\n${(last.content ?? '').trim()}`,
    });
  return actions;
}

export interface DiffRow {
  a: Action | null;
  b: Action | null;
  same: boolean;
}

/** Actions side by side by a longest common subsequence; quadratic, so the caller bounds both sides. */
export function align(a: readonly Action[], b: readonly Action[]): DiffRow[] {
  const width = b.length + 1;
  // Length of the longest common subsequence of what follows a[i] and b[j].
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      longest[i * width + j] =
        a[i]!.hash === b[j]!.hash
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
  const rows: DiffRow[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i]!.hash === b[j]!.hash) rows.push({ a: a[i++]!, b: b[j++]!, same: true });
    else if (longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!) rows.push({ a: a[i++]!, b: null, same: false });
    else rows.push({ a: null, b: b[j++]!, same: false });
  }
  for (; i < a.length; i += 1) rows.push({ a: a[i]!, b: null, same: false });
  for (; j < b.length; j += 1) rows.push({ a: null, b: b[j]!, same: false });
  return rows;
}
