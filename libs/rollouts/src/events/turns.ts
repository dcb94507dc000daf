import type { MessageType } from '@palestra/protocol';
import type { MessageSkeleton } from './message-skeleton.ts';

const POLICY: ReadonlySet<MessageType> = new Set(['reasoning', 'assistant_message', 'tool_call']);

export const isPolicy = (type: MessageType): boolean => POLICY.has(type);

/** What the policy said, and what came back until it spoke again. Only the first of a rollout can have nothing said. */
export interface Turn {
  policy: MessageSkeleton[];
  answers: MessageSkeleton[];
}

/**
 * Splits ordered messages into turns (dashboard.md 2.3: runs of reasoning, assistant_message, tool_call between results and user
 * messages). The prompt before the first run is a turn without policy, kept because a reward could stand on it.
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
