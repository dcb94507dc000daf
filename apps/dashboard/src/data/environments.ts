import { queryOptions } from '@tanstack/react-query';
import type { EnvironmentRuns, EnvironmentVersionList, TaskDifficulty } from '@palestra/protocol';
import { api } from './http.ts';

/** Usage, versions and task difficulty of environments; `queries.ts` has the environments themselves. */

export type EnvironmentRun = EnvironmentRuns['runs'][number];
export type VersionView = EnvironmentVersionList['versions'][number];
export type TaskFigures = TaskDifficulty['tasks'][number];

export const usageQuery = queryOptions({
  queryKey: ['environments', 'usage'],
  queryFn: ({ signal }) => api('GET /v1/environment-usage', { signal }),
  meta: { live: 'replace' },
});

export const environmentRunsQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: ['environment', owner, name, 'runs'],
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/runs', { path: { owner, name }, signal }),
  });

export const versionsQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: ['environment', owner, name, 'versions'],
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/versions', { path: { owner, name }, signal }),
  });

/** Figures of the tasks of all splits and variants; the page joins them to the tasks that it shows. */
export const difficultyQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: ['environment', owner, name, 'difficulty'],
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/task-difficulty', { path: { owner, name }, signal }),
  });
