import { QueryClient } from '@tanstack/react-query';
import { ApiError } from './http.ts';

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: {
      /**
       * What grows while rollouts arrive. `replace`: charts and counters, read again when the stream says that their run changed (its id or
       * name is in the key). Without it a page keeps what its reader looks at, and offers what is new behind a pill.
       */
      live?: 'replace';
    };
  }
}

/** Of a list that its reader reads: it is read again when the reader says so, and not by itself. */
export const asRead = { staleTime: Infinity, gcTime: 30 * 60_000, refetchOnWindowFocus: false, refetchOnReconnect: false } as const;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      refetchOnWindowFocus: true,
      retry: (failures, error) => failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
    },
  },
});
