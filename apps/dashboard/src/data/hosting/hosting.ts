import { queryOptions } from '@tanstack/react-query';
import {
  type ChannelView,
  type CreateDeployInput,
  type DeployView,
  FINAL_DEPLOY_STATES,
  type GitLinkBody,
  type HostingSettingsInput,
  type LinkedGit,
} from '@palestra/protocol';
import { queryClient } from '../client.ts';
import { api, pageHeaders, request, search, toError } from '../http.ts';

/** Deploys of an environment, its channels, instances, settings and secrets (docs/hosting.md). */

/** `owner/name` in two parts. */
export interface EnvironmentName {
  owner: string;
  name: string;
}

const WORKING_MS = 1_000;
const RESTING_MS = 5_000;

export const isOver = ({ state }: Pick<DeployView, 'state'>): boolean => FINAL_DEPLOY_STATES.has(state);

const key = ({ owner, name }: EnvironmentName, ...rest: (string | number)[]) => ['environment', owner, name, ...rest];

/** What the service can run. */
export const hostingOfferQuery = queryOptions({
  queryKey: ['hosting'],
  queryFn: ({ signal }) => api('GET /v1/hosting', { signal }),
  // After a start of the service its engine does not answer yet.
  refetchInterval: ({ state }) => (state.data?.hosts === false ? 2 * RESTING_MS : false),
});

export const deploysQuery = ({ owner, name }: EnvironmentName) =>
  queryOptions({
    queryKey: key({ owner, name }, 'deploys'),
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/deploys', { path: { owner, name }, signal }),
    refetchInterval: ({ state }) => (state.data?.deploys.every(isOver) ? RESTING_MS : WORKING_MS),
  });

export const deployQuery = (id: string) =>
  queryOptions({
    queryKey: ['deploy', id],
    queryFn: ({ signal }) => api('GET /v1/deploys/{id}', { path: { id }, signal }),
    refetchInterval: ({ state }) => (state.data && isOver(state.data) ? false : WORKING_MS),
  });

export const channelsQuery = ({ owner, name }: EnvironmentName) =>
  queryOptions({
    queryKey: key({ owner, name }, 'channels'),
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/channels', { path: { owner, name }, signal }),
    refetchInterval: RESTING_MS,
  });

export const instancesQuery = ({ owner, name }: EnvironmentName) =>
  queryOptions({
    queryKey: key({ owner, name }, 'instances'),
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/instances', { path: { owner, name }, signal }),
    refetchInterval: 2 * WORKING_MS,
  });

export const versionDiffQuery = ({ owner, name }: EnvironmentName, a: number, b: number) =>
  queryOptions({
    queryKey: key({ owner, name }, 'diff', a, b),
    queryFn: ({ signal }) =>
      api('GET /v1/environments/{owner}/{name}/versions/{a}/diff/{b}', { path: { owner, name, a: String(a), b: String(b) }, signal }),
  });

export const hostingSettingsQuery = ({ owner, name }: EnvironmentName) =>
  queryOptions({
    queryKey: key({ owner, name }, 'hosting'),
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/hosting', { path: { owner, name }, signal }),
    // A refetch would replace what the reader types.
    refetchOnWindowFocus: false,
  });

export const secretsQuery = ({ owner, name }: EnvironmentName) =>
  queryOptions({
    queryKey: key({ owner, name }, 'secrets'),
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/secrets', { path: { owner, name }, signal }),
  });

export const gitLinkQuery = ({ owner, name }: EnvironmentName) =>
  queryOptions({
    queryKey: key({ owner, name }, 'git'),
    queryFn: ({ signal }) => api('GET /v1/environments/{owner}/{name}/git', { path: { owner, name }, signal }),
  });

/** Reads everything about the environment again, also in the catalogue. */
export async function refreshEnvironment({ owner, name }: EnvironmentName): Promise<void> {
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: key({ owner, name }) }),
    queryClient.invalidateQueries({ queryKey: ['environments'] }),
  ]);
}

async function changed<T>(environment: EnvironmentName, change: Promise<T>): Promise<T> {
  const result = await change;
  await refreshEnvironment(environment);
  return result;
}

const pathOf = ({ owner, name }: EnvironmentName): string => `/v1/environments/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`;

/** Begins a deploy of a git repository, an image or URLs. Throws ApiError. */
export const deploy = (environment: EnvironmentName, body: CreateDeployInput): Promise<DeployView> =>
  changed(environment, request<DeployView>(`${pathOf(environment)}/deploys`, { method: 'POST', body }));

/** As `deploy`, of a folder: a tar archive that gzip compressed. */
export async function deployArchive(
  environment: EnvironmentName,
  archive: Blob,
  options: Pick<CreateDeployInput, 'channel' | 'create' | 'private'> & { settings?: HostingSettingsInput | undefined },
  signal: AbortSignal,
): Promise<DeployView> {
  const { channel, create, private: isPrivate, settings } = options;
  const query = search({ create, private: isPrivate, settings: settings && JSON.stringify(settings) });
  // `search` leaves out empty values. Here an empty channel means that no channel is promoted.
  const promoted = channel === null ? `${query === '' ? '?' : '&'}channel=` : '';
  const headers = { ...pageHeaders(), 'content-type': 'application/gzip', accept: 'application/json' };
  const response = await fetch(`${pathOf(environment)}/deploys${query}${promoted}`, {
    method: 'POST',
    credentials: 'same-origin',
    headers,
    body: archive,
    signal,
  });
  if (!response.ok) throw await toError(response);
  return changed(environment, response.json() as Promise<DeployView>);
}

export const cancelDeploy = async ({ id, environment }: DeployView): Promise<void> => {
  const [owner, name] = environment.split('/') as [string, string];
  queryClient.setQueryData(deployQuery(id).queryKey, await api('POST /v1/deploys/{id}/cancel', { path: { id } }));
  await queryClient.invalidateQueries(deploysQuery({ owner, name }));
};

/** `percent` below 100: the version is a canary. */
export const promote = (environment: EnvironmentName, version: number, channel: string, percent: number): Promise<ChannelView> =>
  changed(
    environment,
    api('POST /v1/environments/{owner}/{name}/promote', { path: { ...environment }, body: { version, channel, percent } }),
  );

export const rollBack = (environment: EnvironmentName, channel: string): Promise<ChannelView> =>
  changed(environment, api('POST /v1/environments/{owner}/{name}/rollback', { path: { ...environment }, body: { channel } }));

export const restartInstance = (environment: EnvironmentName, id: string): Promise<unknown> =>
  changed(environment, api('POST /v1/environments/{owner}/{name}/instances/{id}/restart', { path: { ...environment, id } }));

export const saveHostingSettings = (environment: EnvironmentName, body: HostingSettingsInput): Promise<unknown> =>
  changed(environment, api('PUT /v1/environments/{owner}/{name}/hosting', { path: { ...environment }, body }));

export const setSecret = (environment: EnvironmentName, secret: string, value: string): Promise<unknown> =>
  changed(environment, api('PUT /v1/environments/{owner}/{name}/secrets/{secret}', { path: { ...environment, secret }, body: { value } }));

export const deleteSecret = (environment: EnvironmentName, secret: string): Promise<unknown> =>
  changed(environment, api('DELETE /v1/environments/{owner}/{name}/secrets/{secret}', { path: { ...environment, secret } }));

export const linkGit = (environment: EnvironmentName, body: GitLinkBody): Promise<LinkedGit> =>
  changed(environment, api('PUT /v1/environments/{owner}/{name}/git', { path: { ...environment }, body }));

export const replaceGitSecret = (environment: EnvironmentName): Promise<LinkedGit> =>
  changed(environment, api('POST /v1/environments/{owner}/{name}/git/secret', { path: { ...environment } }));

export const unlinkGit = (environment: EnvironmentName): Promise<unknown> =>
  changed(environment, api('DELETE /v1/environments/{owner}/{name}/git', { path: { ...environment } }));
