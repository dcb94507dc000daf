import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { ListedRun, RunList } from '@palestra/protocol';
import { asRead } from './client.ts';
import { api } from './http.ts';

export interface RunsAsk {
  /** Part of a name. */
  search?: string | undefined;
  tag?: string | undefined;
}

const PAGE = 50;

const FIRST_RUN_MS = 2_000;

/** Runs, newest activity first, as they were when `snapshot` began; a run that moves to the front between two pages is told twice. */
export const runPagesQuery = ({ search, tag }: RunsAsk, snapshot: string) =>
  infiniteQueryOptions({
    queryKey: ['runs', 'pages', search ?? '', tag ?? '', snapshot],
    queryFn: ({ pageParam, signal }) => api('GET /v1/runs', { query: { search, tag, limit: PAGE, cursor: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    ...asRead,
    // Of one run, or none, nothing can move: whoever tries a first upload sees it come.
    refetchInterval: ({ state }) => ((state.data?.pages[0]?.runs.length ?? 2) < 2 ? FIRST_RUN_MS : false),
  });

/** The first page as it is now: `first` is how it was read, `at` when. */
export const runsNowQuery = ({ search, tag }: RunsAsk, snapshot: string, first: RunList | undefined, at: number) =>
  queryOptions({
    queryKey: ['runs', 'now', search ?? '', tag ?? '', snapshot],
    queryFn: ({ signal }) => api('GET /v1/runs', { query: { search, tag, limit: PAGE }, signal }),
    ...(first && { initialData: first, initialDataUpdatedAt: at }),
    enabled: first !== undefined,
    meta: { live: 'replace' },
  });

/** The runs as they were read, each in its place, with its figures as they are now; and how many more there are. */
export function runsWithNews(
  read: readonly ListedRun[],
  total: number,
  now: RunList | undefined,
): { runs: readonly ListedRun[]; fresh: number } {
  if (now === undefined) return { runs: read, fresh: 0 };
  const newest = new Map(now.runs.map((run) => [run.id, run]));
  return { runs: read.map((run) => newest.get(run.id) ?? run), fresh: Math.max(0, now.total - total) };
}

/** Each run once, as its newest page tells it. */
export function uniqueRuns(pages: readonly { runs: ListedRun[] }[]): ListedRun[] {
  const seen = new Map<string, ListedRun>();
  for (const { runs } of pages) for (const run of runs) if (!seen.has(run.id)) seen.set(run.id, run);
  return [...seen.values()];
}
