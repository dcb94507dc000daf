import { infiniteQueryOptions } from '@tanstack/react-query';
import type { SearchPage } from '@palestra/protocol';
import { api } from './http.ts';

export type FindMode = 'text' | 'regex';
export type Hit = SearchPage['hits'][number];
const HITS = 30;
/** How often a search without hits is repeated while rollouts wait for the index. */
const PENDING_MS = 2_000;

/** Messages with `text` in rollouts of the query `within`. A page can be short or empty and still have a next page: searches have a time limit. */
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
    // An empty result has nothing that could move, and new messages are searchable within seconds.
    refetchInterval: ({ state }) => (state.data?.pages.every(({ hits, pending }) => pending && hits.length === 0) ? PENDING_MS : false),
  });
