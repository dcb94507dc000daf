import { infiniteQueryOptions, keepPreviousData } from '@tanstack/react-query';
import type { ComparedTasks } from '@palestra/protocol';
import { api } from './http.ts';
import type { RunFilter } from './run-reads.ts';

/** Runs beside each other. */
export type ComparedTask = ComparedTasks['tasks'][number];
export type Pair = ComparedTasks['pairs'][number];

export const COMPARE_SORTS = ['size', 'delta', 'first', 'other'] as const;
export interface CompareSort {
  by: (typeof COMPARE_SORTS)[number];
  /** Which other run it is about: 1 for the second one. */
  against: number;
  order: 'asc' | 'desc';
}
const TASK_PAGE = 100;

/** Tasks that all of these runs scored; run ids, of which the first is what the others are held against. */
export const comparedTasksQuery = (runs: readonly string[], { steps, phase, env, den }: RunFilter, { by, against, order }: CompareSort) =>
  infiniteQueryOptions({
    queryKey: ['compare', runs, steps, phase, env, den, by, against, order],
    queryFn: ({ pageParam, signal }) =>
      api('GET /v1/compare/tasks', {
        query: { runs, steps, phase, env, den, sort: by, against, order, limit: TASK_PAGE, cursor: pageParam },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
  });
