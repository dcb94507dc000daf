import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { ComparedTasks, CompareSort as SortBy } from '@palestra/protocol';
import { keepWithin } from './client.ts';
import { api } from './http.ts';
import type { RunFilter } from './run-queries.ts';

/** Comparisons of runs. */
export type ComparedTask = ComparedTasks['tasks'][number];
export type Pair = ComparedTasks['pairs'][number];

/** Differences of these runs to the first one. `runs` are ids. */
export const comparedRunsQuery = (runs: readonly string[], { steps, phase, env, den }: RunFilter) =>
  queryOptions({
    queryKey: ['compare', 'runs', runs, steps, phase, env, den],
    queryFn: ({ signal }) => api('GET /v1/compare', { query: { runs, steps, phase, env, den }, signal }),
    placeholderData: keepWithin('compare', 'runs', runs),
    enabled: runs.length > 1,
  });

export interface TaskSort {
  by: SortBy;
  /** The index of the run that is compared with the first: 1 for the second run. */
  against: number;
  order: 'asc' | 'desc';
}
const TASK_PAGE = 100;

/** Tasks with scored rollouts in all of these runs. `runs` are ids; the first run is the reference. */
export const comparedTasksQuery = (runs: readonly string[], { steps, phase, env, den }: RunFilter, { by, against, order }: TaskSort) =>
  infiniteQueryOptions({
    queryKey: ['compare', runs, steps, phase, env, den, by, against, order],
    queryFn: ({ pageParam, signal }) =>
      api('GET /v1/compare/tasks', {
        query: { runs, steps, phase, env, den, sort: by, against, order, limit: TASK_PAGE, cursor: pageParam },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepWithin('compare', runs),
  });
