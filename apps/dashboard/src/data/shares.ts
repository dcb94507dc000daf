import { queryOptions } from '@tanstack/react-query';
import type { NewShare } from '@palestra/protocol';
import { queryClient } from './client.ts';
import { api, ApiError } from './http.ts';

/** Links that show a rollout, a run, a list or a comparison to people without an account. */

const shares = ['shares'] as const;

/** Active links, newest first: those that name a rollout or a run, or all of the organisation. */
export const sharesQuery = (of: { rollout?: string; run?: string } = {}) =>
  queryOptions({
    queryKey: [...shares, of],
    queryFn: async ({ signal }) => (await api('GET /v1/shares', { query: of, signal })).shares,
  });

/** Only this response contains the link, as `url`. */
export async function createShare(body: NewShare) {
  const created = await api('POST /v1/shares', { body });
  await queryClient.invalidateQueries({ queryKey: shares });
  return created;
}

export async function revokeShare(id: string): Promise<void> {
  await api('DELETE /v1/shares/{id}', { path: { id } });
  await queryClient.invalidateQueries({ queryKey: shares });
}

/** What the link shows that this browser opened last; null without a valid link. */
export const openedShareQuery = queryOptions({
  queryKey: ['shared'],
  queryFn: ({ signal }) =>
    api('GET /v1/shared', { signal }).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }),
  staleTime: 0,
});
