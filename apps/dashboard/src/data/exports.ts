import { queryOptions } from '@tanstack/react-query';
import type { RolloutExportBody, RolloutExportView } from '@palestra/protocol';
import { api } from './http.ts';

const POLL_MS = 1_000;
export const isUnderWay = (job: Pick<RolloutExportView, 'state'>): boolean => job.state === 'pending' || job.state === 'running';

/** All exports of rollouts of the organisation, newest first; read again every second while one is being written. */
export const exportsQuery = queryOptions({
  queryKey: ['exports'],
  queryFn: async ({ signal }) => (await api('GET /v1/exports', { signal })).exports,
  refetchInterval: ({ state }) => (state.data?.some(isUnderWay) ? POLL_MS : false),
});

export const createExport = (body: RolloutExportBody) => api('POST /v1/exports', { body });
/** Cancels it when it is under way; its files are erased. */
export const deleteExport = (id: string) => api('DELETE /v1/exports/{id}', { path: { id } });

/** Where a file of a finished export is downloaded with the session's cookie; it never expires while the export is there. */
export const exportFileHref = (id: string, name: string): string =>
  `/v1/exports/${encodeURIComponent(id)}/files/${encodeURIComponent(name)}`;
