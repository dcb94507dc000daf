import { infiniteQueryOptions } from '@tanstack/react-query';
import type { SearchPage } from '@palestra/protocol';
import { api } from './http.ts';

export type FindMode = 'text' | 'regex';
export type Hit = SearchPage['hits'][number];
const HITS = 30;
/** A search that found nothing while rollouts wait for the index looks again this often. */
const PENDING_MS = 2_000;

/** Messages of the query's rollouts that hold `text`. A page may be short, or empty, and still have a next one: its time was over. */
export const findQuery = (run: string, within: string, text: string, mode: FindMode, snapshot: string) =>
  infiniteQueryOptions({
    queryKey: ['explorer', run, 'find', within, text, mode, snapshot],
    queryFn: ({ pageParam, signal }) =>
      api('GET /v1/runs/{run}/search', { path: { run }, query: { q: text, mode, within, limit: HITS, cursor: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: Infinity,
    gcTime: 30 * 60_000,
    refetchOnWindowFocus: false,
    // Nothing is read yet that could move, and what came last is searchable in seconds.
    refetchInterval: ({ state }) => (state.data?.pages.every(({ hits, pending }) => pending && hits.length === 0) ? PENDING_MS : false),
  });
