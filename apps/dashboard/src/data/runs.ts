import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { ListedRun, RunList } from '@palestra/protocol';
import { manualRefresh } from './client.ts';
import { api } from './http.ts';

export interface RunListRequest {
  /** A part of the name. */
  search?: string | undefined;
  tag?: string | undefined;
}

const PAGE = 50;

const FIRST_RUN_MS = 2_000;

/** Runs, newest activity first, as of `snapshot`. A run that moves to the front between two pages appears twice. */
export const runPagesQuery = ({ search, tag }: RunListRequest, snapshot: string) =>
  infiniteQueryOptions({
    queryKey: ['runs', 'pages', search ?? '', tag ?? '', snapshot],
    queryFn: ({ pageParam, signal }) => api('GET /v1/runs', { query: { search, tag, limit: PAGE, cursor: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    ...manualRefresh,
    // A list of at most one run cannot move, and a first upload appears without a reload.
    refetchInterval: ({ state }) => ((state.data?.pages[0]?.runs.length ?? 2) < 2 ? FIRST_RUN_MS : false),
  });

/** The current first page. `first` was read at `at`. */
export const runsNowQuery = ({ search, tag }: RunListRequest, snapshot: string, first: RunList | undefined, at: number) =>
  queryOptions({
    queryKey: ['runs', 'now', search ?? '', tag ?? '', snapshot],
    queryFn: ({ signal }) => api('GET /v1/runs', { query: { search, tag, limit: PAGE }, signal }),
    ...(first && { initialData: first, initialDataUpdatedAt: at }),
    enabled: first !== undefined,
    meta: { live: 'replace' },
  });

/** Erases the runs of the demo with their sessions and its environment. */
export const removeDemo = () => api('DELETE /v1/demo');

/** The runs in the order in which they were read, with their current figures, and the number of new runs. */
export function runsWithNews(
  read: readonly ListedRun[],
  total: number,
  now: RunList | undefined,
): { runs: readonly ListedRun[]; fresh: number } {
  if (now === undefined) return { runs: read, fresh: 0 };
  const newest = new Map(now.runs.map((run) => [run.id, run]));
  return { runs: read.map((run) => newest.get(run.id) ?? run), fresh: Math.max(0, now.total - total) };
}

/** Each run once, from the first page that contains it. */
export function uniqueRuns(pages: readonly { runs: ListedRun[] }[]): ListedRun[] {
  const seen = new Map<string, ListedRun>();
  for (const { runs } of pages) for (const run of runs) if (!seen.has(run.id)) seen.set(run.id, run);
  return [...seen.values()];
}
