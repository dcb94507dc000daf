import { InfiniteQueryObserver, QueryClient } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { ApiError, errorInstead } from '../data/http.ts';
import { nextPageOf } from './next-page.ts';

test('a list whose next page could not be read keeps its rows, and only the reader tries again', async () => {
  const answers: (() => number[])[] = [
    () => [1],
    () => {
      throw new ApiError(503, 'unavailable', 'The server has too much to do');
    },
    () => [2],
  ];
  const observer = new InfiniteQueryObserver(new QueryClient(), {
    queryKey: ['rows'],
    initialPageParam: 0,
    retry: false,
    queryFn: async () => answers.shift()!(),
    getNextPageParam: (_page: number[], all: number[][]) => (all.length < 2 ? all.length : undefined),
  });
  const now = () => observer.getCurrentResult();
  const stop = observer.subscribe(() => {});
  expect(nextPageOf(now())).toEqual({ more: null, unread: null });
  await expect.poll(() => now().data?.pages).toEqual([[1]]);
  nextPageOf(now()).more!();
  await expect.poll(() => now().error).toBeInstanceOf(ApiError);
  expect(errorInstead(now())).toBeNull();
  const { more, unread } = nextPageOf(now());
  expect(more).toBeNull();
  expect(unread!.error.message).toBe('The server has too much to do');
  unread!.retry!();
  expect(nextPageOf(now()).unread?.retry).toBeNull();
  await expect.poll(() => now().data?.pages).toEqual([[1], [2]]);
  expect(nextPageOf(now())).toEqual({ more: null, unread: null });
  stop();
});
