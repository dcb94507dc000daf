import { queryOptions } from '@tanstack/react-query';
import type { RolloutExportBody, RolloutExportView } from '@palestra/protocol';
import { api } from './http.ts';

const POLL_MS = 1_000;
export const isInProgress = (job: Pick<RolloutExportView, 'state'>): boolean => job.state === 'pending' || job.state === 'running';

/** All rollout exports of the organisation, newest first; refetched every second while one is in progress. */
export const exportsQuery = queryOptions({
  queryKey: ['exports'],
  queryFn: async ({ signal }) => (await api('GET /v1/exports', { signal })).exports,
  refetchInterval: ({ state }) => (state.data?.some(isInProgress) ? POLL_MS : false),
});

export const createExport = (body: RolloutExportBody) => api('POST /v1/exports', { body });
/** Cancels an export in progress and erases its files. */
export const deleteExport = (id: string) => api('DELETE /v1/exports/{id}', { path: { id } });

/** The download of a file of a finished export. It uses the session cookie and does not expire before the export. */
export const exportFileHref = (id: string, name: string): string =>
  `/v1/exports/${encodeURIComponent(id)}/files/${encodeURIComponent(name)}`;
