import type { NextReview, ReviewItem, ReviewQueue } from '@palestra/protocol';
import { useCallback, useEffect, useRef, useState } from 'react';
import { queryClient } from '../data/client.ts';
import { ApiError, isPassing } from '../data/http.ts';
import { answerReview, nextReview, reviewItem, reviewQueueQuery } from '../data/reviews.ts';

type Progress = Omit<NextReview, 'item'>;
const START: Progress = { items: 0, complete: 0, answered: 0, skipped: 0 };
/** Errors after which the next item comes. */
const PASSED = new Map([
  ['review_item_taken', 'Other reviewers answered that item in the meantime, so your answer was not stored.'],
  ['review_item_not_found', 'The rollout of that item was erased.'],
]);

/** The reviewer's way through a queue: one request at a time, so that a key that is pressed twice answers once. */
export function useReview({ id }: Pick<ReviewQueue, 'id'>) {
  const [item, setItem] = useState<ReviewItem | null | undefined>(undefined);
  const [progress, setProgress] = useState(START);
  const [comment, setComment] = useState('');
  const [notice, setNotice] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const withSkipped = useRef(false);
  const busy = useRef(false);
  /** An answer that was not stored, because the server did not respond, is sent again by a retry. */
  const last = useRef<() => Promise<void>>(undefined);

  const show = useCallback((shown: ReviewItem | null) => {
    setItem(shown);
    setComment(shown?.answer?.comment ?? '');
  }, []);
  const advance = useCallback(async () => {
    const { item: next, ...rest } = await nextReview(id, withSkipped.current);
    if (next === null) await queryClient.invalidateQueries(reviewQueueQuery(id));
    setProgress(rest);
    show(next);
  }, [id, show]);
  const run = useCallback(
    async (work: () => Promise<void>) => {
      if (busy.current) return;
      busy.current = true;
      last.current = work;
      try {
        await work();
        setError(null);
        setNotice(null);
      } catch (failure) {
        const passed = failure instanceof ApiError ? PASSED.get(failure.code) : undefined;
        if (passed === undefined) setError(failure as Error);
        else {
          await advance().catch(setError);
          setNotice(passed);
        }
      } finally {
        busy.current = false;
      }
    },
    [advance],
  );
  const start = useCallback(() => void run(advance), [run, advance]);
  useEffect(() => {
    const timer = setTimeout(start);
    return () => clearTimeout(timer);
  }, [start]);

  const decide = (choice: string | null) => {
    if (!item) return;
    const text = comment.trim();
    void run(async () => {
      await answerReview(id, item.position, { choice, comment: choice === null || text === '' ? null : text });
      await advance();
    });
  };
  return {
    item,
    ...progress,
    comment,
    setComment,
    notice,
    error,
    retry: () => void run((isPassing(error) && last.current) || advance),
    answer: (choice: string) => decide(choice),
    /** Leaves an earlier answer as it is. */
    skip: () => (item?.answer ? start() : decide(null)),
    /** To the item before, whose answer can be changed. */
    back: () => {
      const previous = item?.previous ?? null;
      if (previous === null) setNotice('You have not answered an item before this one.');
      else void run(async () => show(await reviewItem(id, previous)));
    },
    reviewSkipped: () => {
      withSkipped.current = true;
      start();
    },
  };
}

export type Review = ReturnType<typeof useReview>;
