import { queryOptions } from '@tanstack/react-query';
import type {
  EnvironmentDiscoveryView,
  EnvironmentRuns,
  EnvironmentVersionList,
  EnvironmentView,
  TaskDifficulty,
} from '@palestra/protocol';
import { api, request } from './http.ts';
import { newSid, openSession, readPrompt } from './playground.ts';

/** Usage, versions and task difficulty of environments; `queries.ts` has the environments themselves. */

export type EnvironmentRun = EnvironmentRuns['runs'][number];
export type VersionView = EnvironmentVersionList['versions'][number];
export type TaskFigures = TaskDifficulty['tasks'][number];

/** How often an empty list is read until its first rows are there: figures follow an upload by seconds. */
const FIRST_ROWS_MS = 5_000;

export const usageQuery = queryOptions({
  queryKey: ['environments', 'usage'],
  queryFn: ({ signal }) => api('GET /v1/environment-usage', { signal }),
  meta: { live: 'replace' },
});

export const environmentRunsQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: ['environment', owner, name, 'runs'],
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/runs', { path: { owner, name }, signal }),
    refetchInterval: ({ state }) => (state.data?.runs.length === 0 ? FIRST_ROWS_MS : false),
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
    refetchInterval: ({ state }) => (state.data?.tasks.length === 0 ? FIRST_ROWS_MS : false),
  });

export type ServerKind = 'remote' | 'openenv' | 'mcp';

/** Registers a running server. Throws ApiError. */
export const addEnvironment = (name: string, source: { kind: ServerKind; url: string }): Promise<EnvironmentView> =>
  request('/v1/environments', { method: 'POST', body: { name, source } });

const pathOf = ({ owner, name }: Pick<EnvironmentView, 'owner' | 'name'>): string =>
  `/v1/environments/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`;

export const deleteEnvironment = (environment: EnvironmentView): Promise<unknown> => request(pathOf(environment), { method: 'DELETE' });

/** What its server says of itself; the service asks it now. */
export const readEnvironment = (environment: EnvironmentView): Promise<EnvironmentDiscoveryView> =>
  request(`${pathOf(environment)}/discovery`);

/** Opens a session on a task, reads its prompt, which waits for the setup of the episode, and closes it. Throws ApiError. */
export async function trySession({ owner, name }: EnvironmentView, variant: string, split: string): Promise<void> {
  const signal = AbortSignal.timeout(SESSION_MS);
  const sid = await openSession(newSid(), { environment: `${owner}/${name}`, variant, task: { split, index: 0 } }, signal);
  try {
    await readPrompt(sid, signal);
  } finally {
    await request(`/v1/sessions/${encodeURIComponent(sid)}`, { method: 'DELETE' });
  }
}
const SESSION_MS = 120_000;
