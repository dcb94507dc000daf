import { QueryClient, type QueryKey } from '@tanstack/react-query';
import { ApiError } from './http.ts';

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: {
      /**
       * `replace`: charts and counters that are refetched when the stream reports a change of their run (its id or name is in the key).
       * Without it a page keeps what its reader sees and shows a pill for updates (ADR 17).
       */
      live?: 'replace';
    };
  }
}

/**
 * Shows the data before while new data loads, if its key begins alike. The figures of another run, or of runs in another order, would stand
 * under the wrong names.
 */
export const keepWithin =
  (...begin: readonly unknown[]) =>
  <T>(data: T | undefined, query: { queryKey: QueryKey } | undefined): T | undefined =>
    JSON.stringify(query?.queryKey.slice(0, begin.length)) === JSON.stringify(begin) ? data : undefined;

/** Options of a list that is refetched only when its reader asks for it. */
export const manualRefresh = { staleTime: Infinity, gcTime: 30 * 60_000, refetchOnWindowFocus: false, refetchOnReconnect: false } as const;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      refetchOnWindowFocus: true,
      retry: (failures, error) => failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
    },
  },
});
