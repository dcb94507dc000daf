import { canonicalArgsHash } from '../json/canonical-json.ts';
import type { UploadedCall } from './ledger-alignment.ts';

/** A tool call or result of an upload, with the fields that the ledger match compares. */
export interface CallMessage {
  index: number;
  type: string;
  name: string | null;
  callId: string | null;
  /** Arguments of a call as JSON text; null for results. */
  content: string | null;
  reward: number | null;
  isFinished: boolean;
}

/**
 * The calls of a rollout in order, each with the reward and end of its result: the first result after the latest call with that id. A
 * result without an id belongs to the first call without an id and without a result.
 */
export function uploadedCalls(messages: readonly CallMessage[]): (UploadedCall & { callId: string | null })[] {
  const calls: (UploadedCall & { callId: string | null })[] = [];
  const open = new Map<string, (typeof calls)[number]>();
  /** Calls without an id, and how many of them have their result. */
  const nameless: typeof calls = [];
  let answered = 0;
  for (const message of messages.toSorted((a, b) => a.index - b.index)) {
    const { callId, index } = message;
    if (message.type === 'tool_call') {
      const argsHash = canonicalArgsHash(message.content);
      const call = { index, tool: message.name ?? '', argsHash, reward: null, finished: false, hasResult: false, callId };
      calls.push(call);
      if (callId === null) nameless.push(call);
      else open.set(callId, call);
    } else if (message.type === 'tool_result') {
      const call = callId === null ? nameless[answered] : open.get(callId);
      if (!call) continue;
      if (callId === null) answered += 1;
      else open.delete(callId);
      Object.assign(call, { reward: message.reward, finished: message.isFinished, hasResult: true });
    }
  }
  return calls;
}
