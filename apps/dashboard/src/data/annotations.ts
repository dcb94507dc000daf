import { queryOptions } from '@tanstack/react-query';
import type { Annotation, NewAnnotation } from '@palestra/protocol';
import { queryClient } from './client.ts';
import { api } from './http.ts';

/** The newest 1 000 annotations of a rollout, newest first. */
export const annotationsQuery = (rollout: string) =>
  queryOptions({
    queryKey: ['annotations', rollout],
    queryFn: async ({ signal }) => (await api('GET /v1/annotations', { query: { rollout, limit: 1_000 }, signal })).annotations,
    staleTime: 30_000,
  });

const invalidate = (rollout: string) => queryClient.invalidateQueries({ queryKey: ['annotations', rollout] });

export async function addAnnotation(body: NewAnnotation): Promise<Annotation> {
  const added = await api('POST /v1/annotations', { body });
  await invalidate(body.rollout);
  return added;
}

export async function deleteAnnotation({ id, rollout }: Pick<Annotation, 'id' | 'rollout'>): Promise<void> {
  await api('DELETE /v1/annotations/{id}', { path: { id } });
  await invalidate(rollout);
}
