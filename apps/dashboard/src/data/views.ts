import { queryOptions } from '@tanstack/react-query';
import type { ApiAnswers, ApiBodies } from './generated/api.ts';
import { api } from './http.ts';

export type SavedView = ApiAnswers['GET /v1/views']['views'][number];
export type ViewBody = ApiBodies['POST /v1/views'];

/** Views kept for the run, and those for every run. */
export const viewsQuery = (run: string) =>
  queryOptions({
    queryKey: ['views', run],
    queryFn: async ({ signal }) => (await api('GET /v1/views', { query: { run }, signal })).views,
  });

export const keepView = (body: ViewBody) => api('POST /v1/views', { body });
export const replaceView = (id: string, body: ViewBody) => api('PUT /v1/views/{id}', { path: { id }, body });
export const deleteView = (id: string) => api('DELETE /v1/views/{id}', { path: { id } });
