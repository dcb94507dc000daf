import type { RolloutMessageView } from '@palestra/protocol';
import { useQueries } from '@tanstack/react-query';
import { useCallback } from 'react';
import { messagesAtQuery } from '../data/rollout.ts';
import { argumentsOf } from '../text/json.ts';

/** Messages of a rollout by index. */
export type Texts = ReadonlyMap<number, RolloutMessageView>;

/** Messages per request. */
const READ = 200;

/** Arguments of a call and its result, or the text of an answer, in one line. */
export function summaryOf({ kind, index }: { kind: string; index: number }, at: Texts | undefined): string {
  const message = at?.get(index);
  if (!message) return '';
  if (kind === 'answer') return (message.content ?? '').slice(0, 200).replaceAll(/\s+/g, ' ');
  const next = at?.get(index + 1);
  const result = next?.type === 'tool_result' ? ` → ${(next.content ?? '').slice(0, 120)}` : '';
  return `${argumentsInLine(message.content)}${result}`.replaceAll(/\s+/g, ' ');
}

/** The values of the arguments of a call. */
export const argumentsInLine = (content: string | null): string =>
  (argumentsOf(content)?.map(([, value]) => value) ?? [content ?? '']).join(', ').slice(0, 120);

/** Texts of several rollouts around a message index. `counted`: the message count of a rollout; a new count reads them again. */
export function useLaneTexts(rollouts: readonly { id: string; num_messages: number }[], from: number): (Texts | undefined)[] {
  const start = Math.floor(from / (READ / 2)) * (READ / 2);
  return useQueries({
    queries: rollouts.map(({ id, num_messages: count }) => messagesAtQuery(id, start, READ, count)),
    combine: useCallback(
      (answers: { data?: RolloutMessageView[] | undefined }[]) =>
        answers.map(({ data }) => data && new Map(data.map((message) => [message.index, message]))),
      [],
    ),
  });
}

/** Texts of one rollout at these message indexes, and of the messages after them. */
export function useTextsAt(rollout: string, indexes: readonly number[]): Texts {
  const starts = [...new Set(indexes.map((index) => Math.floor(index / (READ / 2)) * (READ / 2)))];
  return useQueries({
    queries: starts.map((start) => messagesAtQuery(rollout, start, READ)),
    combine: useCallback(
      (answers: { data?: RolloutMessageView[] | undefined }[]) =>
        new Map(answers.flatMap(({ data = [] }) => data.map((message) => [message.index, message] as const))),
      [],
    ),
  });
}
