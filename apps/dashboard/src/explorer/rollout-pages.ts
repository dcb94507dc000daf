import { useInfiniteQuery } from '@tanstack/react-query';
import type { RolloutRow } from '@palestra/protocol';
import { useMemo } from 'react';
import { rolloutPagesQuery } from '../data/explorer.ts';
import { errorInstead } from '../data/http.ts';
import { nextPageOf, type Unread } from '../table/next-page.ts';
import type { ListOrder } from '../data/list-order.ts';

export interface RolloutPages {
  rows: readonly RolloutRow[];
  /** The number of matching rollouts when the first page was read. */
  total: { count: number; atLeast: boolean } | undefined;
  /** Loads the next page; null if there is none or it is loading. */
  more: (() => void) | null;
  unread: Unread | null;
  /** Whether `rows` has every row of the query. */
  complete: boolean;
  loading: boolean;
  error: Error | null;
  retry: () => void;
}

/** The loaded rows of the query in order, each once: a rollout that changes between two pages can be in both. */
export function useRolloutPages(run: string, q: string, order: ListOrder, snapshot: string, enabled: boolean): RolloutPages {
  const pages = useInfiniteQuery({ ...rolloutPagesQuery(run, q, order, snapshot), enabled });
  const { data, hasNextPage, refetch } = pages;
  const error = errorInstead(pages);
  const rows = useMemo(() => [...new Map(data?.pages.flatMap((page) => page.rollouts).map((row) => [row.id, row])).values()], [data]);
  const first = data?.pages[0];
  return {
    rows,
    total: first && { count: first.total, atLeast: first.total_is === 'at_least' },
    ...nextPageOf(pages),
    complete: data !== undefined && !hasNextPage,
    loading: enabled && !data && !error,
    error,
    retry: () => void refetch(),
  };
}
