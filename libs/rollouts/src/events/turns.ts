import type { MessageType } from '@palestra/protocol';
import type { MessageSkeleton } from './message-skeleton.ts';

const POLICY: ReadonlySet<MessageType> = new Set(['reasoning', 'assistant_message', 'tool_call']);

export const isPolicy = (type: MessageType): boolean => POLICY.has(type);

/** Messages of the policy and the answers until its next message. Only the first turn of a rollout can have an empty `policy`. */
export interface Turn {
  policy: MessageSkeleton[];
  answers: MessageSkeleton[];
}

/**
 * Splits ordered messages into turns (docs/reference/metrics.md#fill-rules). The prompt before the first message of the policy is a turn
 * without policy, because a reward can be on it.
 */
export function turnsOf(messages: readonly MessageSkeleton[]): Turn[] {
  const turns: Turn[] = [];
  let turn: Turn | undefined;
  for (const message of messages) {
    const policy = isPolicy(message.type);
    if (turn === undefined || (policy && turn.answers.length > 0)) {
      turn = { policy: [], answers: [] };
      turns.push(turn);
    }
    (policy ? turn.policy : turn.answers).push(message);
  }
  return turns;
}

export const countTurns = (turns: readonly Turn[]): number => turns.filter(({ policy }) => policy.length > 0).length;

/** Turns of the policy that a tool or a user answered. */
export const countAnswered = (turns: readonly Turn[]): number =>
  turns.filter(({ policy, answers }) => policy.length > 0 && answers.length > 0).length;
