import { canonicalArgsHash, MESSAGE_FLAGS } from '@palestra/rollouts';
import type { StoredMessageRow } from '../store/storage/transcript-reader.service.ts';

export interface Action {
  /** Index of its message. */
  index: number;
  kind: 'call' | 'answer';
  tool: string | null;
  /** Whether its result is an error. */
  error: boolean;
  /** Reward of its result. */
  reward: number | null;
  /** Equal for equal behaviour. */
  hash: string;
}

/** The actions of the policy: each call with its outcome, and the final answer. `messages`: in their order. */
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

/** Aligns actions by a longest common subsequence. Quadratic, so the caller must bound both sides. */
export function align(a: readonly Action[], b: readonly Action[]): DiffRow[] {
  const width = b.length + 1;
  // Length of the longest common subsequence of the actions from a[i] and b[j] on.
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
