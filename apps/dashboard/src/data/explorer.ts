import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { RolloutList, RunConfig } from '@palestra/protocol';
import { keepWithin } from './client.ts';
import { api, type Query } from './http.ts';
import { type ListOrder, NEWEST_FIRST } from './list-order.ts';

export const PAGE_ROWS = 200;

export type SuccessRule = RunConfig['success'][number];

const keptMs = 30 * 60_000;
const SHARED_ROWS = 100;

const page = (run: string, { id, order }: ListOrder, query: Query, signal: AbortSignal): Promise<RolloutList> =>
  api('GET /v1/runs/{id}/rollouts', { path: { id: run }, query: { sort: id, order, ...query }, signal });

/** Pages of the list of a share link. The server takes the query from the link. */
export const sharedListQuery = (run: string) =>
  infiniteQueryOptions({
    queryKey: ['shared-list', run],
    queryFn: ({ pageParam, signal }) => page(run, NEWEST_FIRST, { limit: SHARED_ROWS, cursor: pageParam }, signal),
    initialPageParam: '',
    getNextPageParam: (last) => last.next ?? undefined,
  });

/**
 * Pages of the rollouts of a query. Their key does not start with `run`, so the stream never refetches them: they stay as read for as long as
 * `snapshot` is the same, because a list changes only when its reader asks for it (ADR 17). A page can be short or empty and still have a
 * next page, because regexes have a time limit.
 */
export const rolloutPagesQuery = (run: string, q: string, order: ListOrder, snapshot: string) =>
  infiniteQueryOptions({
    queryKey: ['explorer', run, 'rollouts', q, order, snapshot],
    queryFn: ({ pageParam, signal }) => page(run, order, { q, limit: PAGE_ROWS, cursor: pageParam }, signal),
    initialPageParam: '',
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: Infinity,
    gcTime: keptMs,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });

/** The number of rollouts that match now. The difference to the total of the list's first page is the number of new rollouts. */
export const rolloutTotalQuery = (run: string, q: string) =>
  queryOptions({
    queryKey: ['run', run, 'total', q],
    queryFn: async ({ signal }) => {
      const { total, total_is } = await page(run, NEWEST_FIRST, { q, limit: 1 }, signal);
      return { total, total_is };
    },
    meta: { live: 'replace' },
  });

/** Values and counts of the query's rollouts. `snapshot` as in `rolloutPagesQuery`, so that the counts belong to the list. */
export const facetsQuery = (run: string, q: string, snapshot: string) =>
  queryOptions({
    queryKey: ['explorer', run, 'facets', q, snapshot],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/facets', { path: { run }, query: { q }, signal }),
    placeholderData: keepWithin('explorer', run),
    staleTime: Infinity,
    gcTime: keptMs,
    refetchOnWindowFocus: false,
  });

/** The success rule of each environment of the run. */
export const successQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'success'],
    queryFn: async ({ signal }): Promise<SuccessRule[]> => (await api('GET /v1/runs/{run}/config', { path: { run }, signal })).success,
    staleTime: 5 * 60_000,
  });

export const PREVIEW_HEAD = 3;
export const PREVIEW_TAIL = 4;

/** Data of the preview panel of a rollout: header, outline, and the first and last messages. */
export const previewQuery = (id: string) =>
  queryOptions({
    queryKey: ['explorer', 'peek', id],
    queryFn: async ({ signal }) => {
      const path = { id };
      const messages = (from: number, limit: number) =>
        api('GET /v1/rollouts/{id}/messages', { path, query: { from, limit, bodies: 'preview' }, signal });
      const [header, outline, head] = await Promise.all([
        api('GET /v1/rollouts/{id}/header', { path, signal }),
        api('GET /v1/rollouts/{id}/outline', { path, signal }),
        messages(0, PREVIEW_HEAD),
      ]);
      const firstOfTail = outline.index.at(-PREVIEW_TAIL) ?? 0;
      const lastOfHead = head.messages.at(-1)?.index ?? -1;
      const tail = outline.total > PREVIEW_HEAD ? (await messages(Math.max(firstOfTail, lastOfHead + 1), PREVIEW_TAIL)).messages : [];
      return { header, outline, head: head.messages, tail };
    },
    placeholderData: keepPreviousData,
  });
