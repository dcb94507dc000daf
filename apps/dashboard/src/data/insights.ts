import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { FailureList, RolloutList, RunTask, RunTaskList, ToolList } from '@palestra/protocol';
import { keepWithin, manualRefresh } from './client.ts';
import { api, apiOfRun, request } from './http.ts';
import type { RunFilter } from './run-queries.ts';

/** Tools, tasks, failures and configuration of a run. */
export type ToolFigures = ToolList['tools'][number];
export type Failure = FailureList['failures'][number];
export type TaskStrip = RunTaskList['tasks'][number];
export type TaskGroup = RunTask['groups'][number];
const TASK_PAGE = 100;
const FAILURE_CLUSTERS = 50;
const FAILURES_NOW_MS = 15_000;

export const toolsQuery = (run: string, { steps, phase }: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'tools', steps, phase],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/tools', { path: { run }, query: { steps, phase }, signal }),
    placeholderData: keepWithin('run', run),
    meta: { live: 'replace' },
  });

/** Figures of a tool by step. */
export const toolStepsQuery = (run: string, tool: string, { steps, phase }: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'tool-steps', tool, steps, phase],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/tools/steps', { path: { run }, query: { tool, steps, phase }, signal }),
    placeholderData: keepWithin('run', run),
    meta: { live: 'replace' },
  });

/** The newest calls of a tool, validated against its published schema. */
export const toolCheckQuery = (run: string, tool: string, { steps, phase }: RunFilter, calls: number) =>
  queryOptions({
    queryKey: ['run', run, 'tool-check', tool, steps, phase, calls],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/tools/check', { path: { run }, query: { tool, steps, phase, calls }, signal }),
  });

export const failuresQuery = (run: string, filter: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'failures', filter.steps, filter.phase],
    queryFn: ({ signal }) => failuresPage(run, filter, signal),
    placeholderData: keepWithin('run', run),
    refetchOnWindowFocus: false,
  });
const failuresPage = (run: string, { steps, phase }: RunFilter, signal: AbortSignal) =>
  apiOfRun('GET /v1/runs/{run}/failures', { path: { run }, query: { steps, phase, limit: FAILURE_CLUSTERS }, signal });
/** The current kinds of failure. */
export const failuresNowQuery = (run: string, filter: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'failures-now', filter.steps, filter.phase] as readonly unknown[],
    queryFn: async ({ signal }) => (await failuresPage(run, filter, signal)).failures,
    // This query reads messages, so it does not run on every change of a step.
    refetchInterval: FAILURES_NOW_MS,
    meta: {},
  });

/** Pages of tasks. They stay as read for as long as `snapshot` is the same. */
export const tasksQuery = (run: string, { phase }: RunFilter, snapshot: string) =>
  infiniteQueryOptions({
    queryKey: ['tasks', run, phase, snapshot],
    queryFn: ({ pageParam, signal }) => tasksPage(run, phase, pageParam, signal),
    initialPageParam: '',
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepWithin('tasks', run),
    ...manualRefresh,
  });
const tasksPage = (run: string, phase: RunFilter['phase'], cursor: string, signal: AbortSignal) =>
  apiOfRun('GET /v1/runs/{run}/tasks', { path: { run }, query: { phase, limit: TASK_PAGE, cursor }, signal });
/** The current first page. */
export const tasksNowQuery = (run: string, { phase }: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'tasks-now', phase] as readonly unknown[],
    queryFn: async ({ signal }) => (await tasksPage(run, phase, '', signal)).tasks,
  });

export const taskQuery = (run: string, task: string, { phase }: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'task', task, phase],
    queryFn: ({ signal }) => apiOfRun('GET /v1/runs/{run}/tasks/{task}', { path: { run, task }, query: { phase }, signal }),
    refetchOnWindowFocus: false,
  });
/** The current groups of a task. */
export const taskNowQuery = (run: string, task: string, { phase }: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'task-now', task, phase] as readonly unknown[],
    queryFn: async ({ signal }) => (await api('GET /v1/runs/{run}/tasks/{task}', { path: { run, task }, query: { phase }, signal })).groups,
  });

/** The rollouts of a task at one step. The key contains the figures of `group`, so new figures refetch the rollouts. */
export const taskGroupQuery = (run: string, group: TaskGroup) => {
  const { key, step, phase } = group;
  return queryOptions({
    queryKey: ['run', run, 'task-group', group],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/groups/{key}', { path: { run, key }, query: { step, phase }, signal }),
    placeholderData: keepWithin('run', run),
    refetchOnWindowFocus: false,
  });
};

export const configQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'config'],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/config', { path: { run }, signal }),
    meta: { live: 'replace' },
  });

/** Settings are replaced as a whole: the normaliser detects omitted settings again. */
export const changeRun = (
  id: string,
  body: { settings?: Record<string, unknown>; retention_days?: number | null; tags?: string[]; finished?: boolean },
) => api('PATCH /v1/runs/{id}', { path: { id }, body: body as never });
export const eraseRun = (id: string) => api('DELETE /v1/runs/{id}', { path: { id } });

/** Distinct names of the newest rollouts, for previews. */
export const rolloutNamesQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'names'],
    queryFn: async ({ signal }) => {
      const { rollouts } = await request<RolloutList>(`/v1/runs/${encodeURIComponent(run)}/rollouts?limit=50`, { signal });
      return [...new Set(rollouts.map(({ rolloutName }) => rolloutName).filter((name) => name !== null))].slice(0, 8);
    },
  });
