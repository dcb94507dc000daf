import type { NewReviewAnswer, NewReviewQueue, ReviewQueueDetail } from '@palestra/protocol';
import { queryOptions } from '@tanstack/react-query';
import { queryClient } from './client.ts';
import { api } from './http.ts';

/** Others answer meanwhile. */
const POLL_MS = 15_000;

/** All review queues of the organisation, newest first. */
export const reviewQueuesQuery = queryOptions({
  queryKey: ['reviews'],
  queryFn: async ({ signal }) => (await api('GET /v1/review-queues', { signal })).queues,
  refetchInterval: POLL_MS,
});

export const reviewQueueQuery = (id: string) =>
  queryOptions({
    queryKey: ['reviews', id],
    queryFn: ({ signal }) => api('GET /v1/review-queues/{id}', { path: { id }, signal }),
    refetchInterval: POLL_MS,
  });

const changed = () => queryClient.invalidateQueries({ queryKey: reviewQueuesQuery.queryKey });

async function withChange<T>(work: Promise<T>): Promise<T> {
  const result = await work;
  await changed();
  return result;
}

export const createReviewQueue = (body: NewReviewQueue): Promise<ReviewQueueDetail> => withChange(api('POST /v1/review-queues', { body }));
export const closeReviewQueue = (id: string) => withChange(api('POST /v1/review-queues/{id}/close', { path: { id } }));
/** Reads the list again, and not the queue that is gone. */
export async function deleteReviewQueue(id: string): Promise<void> {
  await api('DELETE /v1/review-queues/{id}', { path: { id } });
  await queryClient.invalidateQueries({ queryKey: reviewQueuesQuery.queryKey, exact: true });
}

/** Reserves the next item. `skipped`: also items that the caller has skipped. */
export const nextReview = (id: string, skipped: boolean) => api('POST /v1/review-queues/{id}/next', { path: { id }, body: { skipped } });
export const reviewItem = (id: string, position: number) =>
  api('GET /v1/review-queues/{id}/items/{position}', { path: { id, position: String(position) } });
export const answerReview = (id: string, position: number, body: NewReviewAnswer) =>
  api('PUT /v1/review-queues/{id}/items/{position}', { path: { id, position: String(position) }, body });
