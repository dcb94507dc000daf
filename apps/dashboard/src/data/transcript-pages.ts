import type { RolloutMessageView, RolloutOutline } from '@palestra/protocol';
import { useQueries } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { PAGE, pageQuery } from './rollout.ts';

/**
 * Reads the texts of the positions `first`..`last` of a rollout by page. Returns a function from a position to its message, or undefined while
 * it loads. Messages are kept while the viewer is mounted, so that scrolling back shows them at once.
 */
export function useTranscriptPages(
  id: string,
  outline: RolloutOutline,
  first: number,
  last: number,
): (at: number) => RolloutMessageView | undefined {
  const seen = useMemo(() => ({ id, version: 0, messages: new Map<number, RolloutMessageView>() }), [id]);
  const [from, to] = [Math.floor(Math.max(0, first) / PAGE), Math.floor(Math.max(0, Math.min(last, outline.total - 1)) / PAGE)];
  const pages = outline.total === 0 ? [] : Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const version = useQueries({
    queries: pages.map((page) => pageQuery(id, outline, page)),
    combine: useCallback(
      (answers: { data?: { first: number; messages: RolloutMessageView[] } | undefined }[]) => {
        for (const { data } of answers) {
          data?.messages.forEach((message, i) => {
            if (seen.messages.get(data.first + i) === message) return;
            seen.messages.set(data.first + i, message);
            seen.version += 1;
          });
        }
        return seen.version;
      },
      [seen],
    ),
  });
  return useCallback(
    (at: number) => {
      const message = version >= 0 ? seen.messages.get(at) : undefined;
      // A late message shifts the positions after it.
      return message?.index === outline.index[at] ? message : undefined;
    },
    [seen, version, outline],
  );
}
