import { queryOptions } from '@tanstack/react-query';
import type {
  ApiKeyView,
  EnvironmentDetails,
  EnvironmentDiscoveryView,
  EnvironmentList,
  EnvironmentView,
  MeView,
  RunList,
  RunView,
  TaskPageView,
} from '@palestra/protocol';
import { sharedRunId } from './guest.ts';
import { ApiError, request } from './http.ts';
import { chooseOrganisation, organisationOfAddress } from './organisation.ts';

/** Query options of server data. Components pass them to `useQuery` and never fetch directly. */

export const TASK_PAGE = 50;

/** How often the state of environments is read while one starts or is unreachable. */
const STARTING_MS = 1_500;
const AWAY_MS = 10_000;
function untilReady(environments: readonly Pick<EnvironmentView, 'status'>[]): number | false {
  if (environments.some(({ status }) => status === 'starting')) return STARTING_MS;
  return environments.some(({ status }) => status === 'unreachable') ? AWAY_MS : false;
}

const part = encodeURIComponent;
const environmentPath = (owner: string, name: string) => `/v1/environments/${part(owner)}/${part(name)}`;

export const keys = {
  runs: ['runs'] as const,
  run: (run: string) => ['run', run] as const,
  rollout: (id: string) => ['rollout', id] as const,
  apiKeys: ['keys'] as const,
};

/** An organisation that an earlier page chose can be gone; one that the address names is an error. */
async function readMe(signal: AbortSignal): Promise<MeView> {
  const read = () => request<MeView>('/v1/me', { signal });
  const me = await read().catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.code !== 'organisation_not_found' || organisationOfAddress(location) !== null) throw error;
    chooseOrganisation(null);
    return read();
  });
  if (organisationOfAddress(location) === null || organisationOfAddress(location) === me.org.name) chooseOrganisation(me.org.name);
  return me;
}

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => readMe(signal),
  staleTime: Infinity,
  // Signing in reads it again. A refetch on window focus would replace what the reader types or reads.
  refetchOnWindowFocus: false,
  // main.tsx has already requested it.
  retryOnMount: false,
});

export const runsQuery = (search: string) =>
  queryOptions({
    queryKey: [...keys.runs, search],
    queryFn: ({ signal }) => request<RunList>(`/v1/runs?${new URLSearchParams({ limit: '100', ...(search && { search }) })}`, { signal }),
    placeholderData: (previous) => previous,
  });

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** A run by its name, as in page addresses, or by its id. */
async function readRun(run: string, signal: AbortSignal): Promise<RunView> {
  const shared = sharedRunId(run);
  if (shared !== undefined) return request<RunView>(`/v1/runs/${shared}`, { signal });
  const { runs } = await request<RunList>(`/v1/runs?${new URLSearchParams({ name: run, limit: '1' })}`, { signal });
  if (runs[0]) return runs[0];
  if (uuid.test(run)) return request<RunView>(`/v1/runs/${run}`, { signal });
  throw new ApiError(404, 'run_not_found', `Run “${run}” not found. It has no rollouts yet, or it belongs to another organisation.`);
}

export const runQuery = (run: string) =>
  queryOptions({ queryKey: keys.run(run), queryFn: ({ signal }) => readRun(run, signal), meta: { live: 'replace' } });

export const environmentsQuery = (search: string) =>
  queryOptions({
    queryKey: ['environments', search],
    queryFn: ({ signal }) =>
      request<EnvironmentList>(`/v1/environments?${new URLSearchParams({ limit: '100', ...(search && { search }) })}`, { signal }),
    placeholderData: (previous) => previous,
    refetchInterval: ({ state }) => untilReady(state.data?.environments ?? []),
  });

export const environmentQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: ['environment', owner, name],
    queryFn: ({ signal }) => request<EnvironmentDetails>(environmentPath(owner, name), { signal }),
    refetchInterval: ({ state }) => untilReady(state.data ? [state.data] : []),
  });

export const discoveryQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: ['environment', owner, name, 'discovery'],
    queryFn: ({ signal }) => request<EnvironmentDiscoveryView>(`${environmentPath(owner, name)}/discovery`, { signal }),
    staleTime: 60_000,
  });

export const tasksQuery = (owner: string, name: string, variant: string, split: string, start: number) =>
  queryOptions({
    queryKey: ['environment', owner, name, 'tasks', variant, split, start],
    queryFn: ({ signal }) => {
      const query = new URLSearchParams({ split, variant, start: String(start), limit: String(TASK_PAGE) });
      return request<TaskPageView>(`${environmentPath(owner, name)}/tasks?${query}`, { signal });
    },
    staleTime: 60_000,
  });

export const apiKeysQuery = queryOptions({
  queryKey: keys.apiKeys,
  queryFn: ({ signal }) => request<{ keys: ApiKeyView[] }>('/v1/keys', { signal }),
});
/** Exchanges an API key for a session cookie. */
export const login = (key: string) => request<void>('/v1/login', { method: 'POST', body: { key } });
