import { useQuery, type UseQueryOptions } from '@tanstack/react-query';

/** What a list lacks that its reader reads since an earlier version of the run: rows that came, figures that are others now. */
export interface News {
  fresh: number;
  changed: boolean;
}
const NONE: News = { fresh: 0, changed: false };

/**
 * `now`: the beginning of the list as it is now; `whole`: it is all of it. Of a longer list the rest may have changed with its run, and nobody
 * has looked: it counts as changed.
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

/** Whether the run has had a newer version than the one a list was read at. */
export const isAhead = (now: string, version: string | null | undefined): boolean => version != null && BigInt(now) > BigInt(version);

/** The list as a page shows it. */
interface Shown<Row> {
  rows: readonly Row[];
  /** Of the run, when its first page was read; undefined: it is not here yet. */
  version: string | null | undefined;
  /** Whether its first page is all of it. */
  whole: boolean;
  key: (row: Row) => string;
}

/** News of a list, looked for only when its run has changed. `first`: reads its first page as it is now, with the stream unless its `meta` says otherwise. */
export function useNews<Row>(
  runVersion: string,
  { rows, version, whole, key }: Shown<Row>,
  first: UseQueryOptions<Row[], Error, Row[], readonly unknown[]>,
): News {
  const ahead = isAhead(runVersion, version);
  const { data } = useQuery({ ...first, queryKey: [...first.queryKey, version], enabled: ahead, meta: first.meta ?? { live: 'replace' } });
  return ahead && data ? newsOf(rows, data, whole, key) : NONE;
}
