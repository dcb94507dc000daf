import type { UseInfiniteQueryResult } from '@tanstack/react-query';

type Pages = Pick<
  UseInfiniteQueryResult<unknown>,
  'data' | 'error' | 'hasNextPage' | 'isFetching' | 'isFetchNextPageError' | 'fetchNextPage' | 'refetch'
>;

/** Why the rows of a list are not complete or not current, and how to read them again; `retry` is null while they are read. */
export interface Unread {
  error: Error;
  retry: (() => void) | null;
}

/** How a table reads on below the rows that it has. After an error only the reader tries again. */
export function nextPageOf(pages: Pages): { more: (() => void) | null; unread: Unread | null } {
  const { data, error, hasNextPage, isFetching, isFetchNextPageError } = pages;
  if (!error || data === undefined) return { more: hasNextPage && !isFetching ? () => void pages.fetchNextPage() : null, unread: null };
  const retry = () => void (isFetchNextPageError ? pages.fetchNextPage() : pages.refetch());
  return { more: null, unread: { error, retry: isFetching ? null : retry } };
}
