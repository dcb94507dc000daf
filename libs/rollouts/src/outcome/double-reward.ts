import type { MessageType } from '@palestra/protocol';

const POLICY: ReadonlySet<MessageType> = new Set(['reasoning', 'assistant_message', 'tool_call']);

/**
 * Whether one turn carries the same reward on several of its events. Some recipes stamp a turn's reward on every event of it
 * (openreward-wire.md 13.9): the sum of message rewards is then not the episode's reward. `messages` by index.
 */
export function hasDoubleReward(messages: readonly { type: MessageType; reward: number | null }[]): boolean {
  let side: boolean | undefined;
  let seen = new Set<number>();
  for (const { type, reward } of messages) {
    if (POLICY.has(type) !== side) {
      side = POLICY.has(type);
      seen = new Set();
    }
    if (reward === null || reward === 0) continue;
    if (seen.has(reward)) return true;
    seen.add(reward);
  }
  return false;
}
