import { infiniteQueryOptions, keepPreviousData } from '@tanstack/react-query';
import type { ApiAnswers } from './generated/api.ts';
import { api } from './http.ts';

export type ListedRun = ApiAnswers['GET /v1/runs']['runs'][number];

export interface RunsAsk {
  /** Part of a name. */
  search?: string | undefined;
  tag?: string | undefined;
}

const PAGE = 50;

const FIRST_RUN_MS = 2_000;

/** Runs, newest activity first, a page after the other: what comes meanwhile moves to the front, so a run may be told twice. */
export const runPagesQuery = ({ search, tag }: RunsAsk) =>
  infiniteQueryOptions({
    queryKey: ['runs', 'pages', search ?? '', tag ?? ''],
    queryFn: ({ pageParam, signal }) => api('GET /v1/runs', { query: { search, tag, limit: PAGE, cursor: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    // Of one run, or none, nothing can move: whoever tries a first upload sees it come.
    refetchInterval: ({ state }) => ((state.data?.pages[0]?.runs.length ?? 2) < 2 ? FIRST_RUN_MS : false),
  });

/** Each run once, as its newest page tells it. */
export function uniqueRuns(pages: readonly { runs: ListedRun[] }[]): ListedRun[] {
  const seen = new Map<string, ListedRun>();
  for (const { runs } of pages) for (const run of runs) if (!seen.has(run.id)) seen.set(run.id, run);
  return [...seen.values()];
}
