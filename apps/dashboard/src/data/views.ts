import { queryOptions } from '@tanstack/react-query';
import type { NewSavedView } from '@palestra/protocol';
import { api } from './http.ts';

/** Views saved for the run, and views for all runs. */
export const viewsQuery = (run: string) =>
  queryOptions({
    queryKey: ['views', run],
    queryFn: async ({ signal }) => (await api('GET /v1/views', { query: { run }, signal })).views,
  });

export const saveView = (body: NewSavedView) => api('POST /v1/views', { body });
export const replaceView = (id: string, body: NewSavedView) => api('PUT /v1/views/{id}', { path: { id }, body });
export const deleteView = (id: string) => api('DELETE /v1/views/{id}', { path: { id } });
