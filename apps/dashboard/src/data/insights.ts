import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { RolloutList } from '@palestra/protocol';
import type { ApiAnswers } from './generated/api.ts';
import { api, request } from './http.ts';
import type { RunScope } from './run-reads.ts';

/** Tools, tasks, failures and ingest of a run. */
export type ToolFigures = ApiAnswers['GET /v1/runs/{run}/tools']['tools'][number];
export type Failure = ApiAnswers['GET /v1/runs/{run}/failures']['failures'][number];
export type TaskStrip = ApiAnswers['GET /v1/runs/{run}/tasks']['tasks'][number];
export type TaskView = ApiAnswers['GET /v1/runs/{run}/tasks/{task}'];
export type TaskGroup = TaskView['groups'][number];
export type RunConfig = ApiAnswers['GET /v1/runs/{run}/config'];

const TASK_PAGE = 100;
const FAILURE_CLUSTERS = 50;

export const toolsQuery = (run: string, { steps, phase }: RunScope) =>
  queryOptions({
    queryKey: ['run', run, 'tools', steps, phase],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/tools', { path: { run }, query: { steps, phase }, signal }),
    placeholderData: keepPreviousData,
    meta: { live: 'replace' },
  });

/** The newest calls of a tool against its published schema, and the tool by step. */
export type ToolCheck = ApiAnswers['GET /v1/runs/{run}/tools/check'];
export type ToolSteps = ApiAnswers['GET /v1/runs/{run}/tools/steps'];

export const toolStepsQuery = (run: string, tool: string, { steps, phase }: RunScope) =>
  queryOptions({
    queryKey: ['run', run, 'tool-steps', tool, steps, phase],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/tools/steps', { path: { run }, query: { tool, steps, phase }, signal }),
    placeholderData: keepPreviousData,
    meta: { live: 'replace' },
  });

export const toolCheckQuery = (run: string, tool: string, { steps, phase }: RunScope, calls: number) =>
  queryOptions({
    queryKey: ['run', run, 'tool-check', tool, steps, phase, calls],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/tools/check', { path: { run }, query: { tool, steps, phase, calls }, signal }),
  });

export const failuresQuery = (run: string, { steps }: RunScope) =>
  queryOptions({
    queryKey: ['run', run, 'failures', steps],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/failures', { path: { run }, query: { steps, limit: FAILURE_CLUSTERS }, signal }),
    placeholderData: keepPreviousData,
  });

export const tasksQuery = (run: string, { phase }: RunScope) =>
  infiniteQueryOptions({
    queryKey: ['run', run, 'tasks', phase],
    queryFn: ({ pageParam, signal }) =>
      api('GET /v1/runs/{run}/tasks', { path: { run }, query: { phase, limit: TASK_PAGE, cursor: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (last) => last.next ?? undefined,
  });

export const taskQuery = (run: string, task: string, { phase }: RunScope) =>
  queryOptions({
    queryKey: ['run', run, 'task', task, phase],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/tasks/{task}', { path: { run, task }, query: { phase }, signal }),
  });

/** The rollouts of a task at one step. */
export const taskGroupQuery = (run: string, key: string, step: number | null, phase: TaskGroup['phase']) =>
  queryOptions({
    queryKey: ['run', run, 'task-group', key, step, phase],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/groups/{key}', { path: { run, key }, query: { step, phase }, signal }),
  });

export const configQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'config'],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/config', { path: { run }, signal }),
    meta: { live: 'replace' },
  });

/** Settings are replaced as a whole: what is left out is found out again. */
export const changeRun = (id: string, body: { settings?: Record<string, unknown>; retention_days?: number | null; tags?: string[] }) =>
  api('PATCH /v1/runs/{id}', { path: { id }, body: body as never });
export const eraseRun = (id: string) => api('DELETE /v1/runs/{id}', { path: { id } });

/** Different names of the newest rollouts, for previews. */
export const rolloutNamesQuery = (run: string) =>
  queryOptions({
    queryKey: ['run', run, 'names'],
    queryFn: async ({ signal }) => {
      const { rollouts } = await request<RolloutList>(`/v1/runs/${encodeURIComponent(run)}/rollouts?limit=50`, { signal });
      return [...new Set(rollouts.map(({ rolloutName }) => rolloutName).filter((name) => name !== null))].slice(0, 8);
    },
  });
