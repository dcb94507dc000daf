import { useQuery, type UseQueryOptions } from '@tanstack/react-query';

/** How a list on the page differs from the current version of the run: the number of new rows, and whether shown rows changed. */
export interface News {
  fresh: number;
  changed: boolean;
}
const NONE: News = { fresh: 0, changed: false };

/**
 * Compares the shown rows with `now`, the current beginning of the list. `whole`: `now` is the whole list. Otherwise the rest counts as
 * changed, because it is not read.
 */
export function newsOf<Row>(shown: readonly Row[], now: readonly Row[], whole: boolean, key: (row: Row) => string): News {
  const before = new Map(shown.map((row) => [key(row), JSON.stringify(row)]));
  let fresh = 0;
  let changed = !whole;
  for (const row of now) {
    const old = before.get(key(row));
    if (old === undefined) fresh += 1;
    else if (old !== JSON.stringify(row)) changed = true;
    before.delete(key(row));
  }
  return { fresh, changed: changed || before.size > 0 };
}

/** Whether the run is newer than the version that a list was read at. */
export const isAhead = (now: string, version: string | null | undefined): boolean => version != null && BigInt(now) > BigInt(version);

/** The list on the page. */
interface Shown<Row> {
  rows: readonly Row[];
  /** The version of the run when the first page was read; undefined while it loads. */
  version: string | null | undefined;
  /** Whether the first page is the whole list. */
  whole: boolean;
  key: (row: Row) => string;
}

/** The news of a list, read only after its run has changed. `first` reads the current first page, and refetches with the stream unless it has `meta`. */
export function useNews<Row>(
  runVersion: string,
  { rows, version, whole, key }: Shown<Row>,
  first: UseQueryOptions<Row[], Error, Row[], readonly unknown[]>,
): News {
  const ahead = isAhead(runVersion, version);
  const { data } = useQuery({ ...first, queryKey: [...first.queryKey, version], enabled: ahead, meta: first.meta ?? { live: 'replace' } });
  return ahead && data ? newsOf(rows, data, whole, key) : NONE;
}
