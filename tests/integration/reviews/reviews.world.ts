import { randomUUID } from 'node:crypto';
import type { NewReviewQueue, NextReview, ReviewItem, ReviewQueueDetail } from '@palestra/protocol';
import type { TestServer } from '../../support/server.ts';

export interface Reviewer {
  id: string;
  name: string;
  headers: Record<string, string>;
}

/** Another member of the server's organisation, with a key. */
export async function addReviewer(server: TestServer, name: string): Promise<Reviewer> {
  const { pool } = server.database;
  const { rows } = await pool.query('INSERT INTO users (name) VALUES ($1) RETURNING id', [`${name}-${randomUUID().slice(0, 8)}`]);
  const key = `or_${randomUUID()}`;
  await pool.query(`INSERT INTO memberships (org_id, user_id, role) SELECT id, $1, 'member' FROM organisations WHERE name = $2`, [
    rows[0].id,
    server.orgName,
  ]);
  await pool.query(
    `INSERT INTO api_keys (org_id, user_id, name, prefix, hash, scopes)
     SELECT id, $1, 'review', 'or_', sha256($2::bytea), '{rollouts}' FROM organisations WHERE name = $3`,
    [rows[0].id, Buffer.from(key), server.orgName],
  );
  return { id: rows[0].id, name, headers: { 'x-api-key': key } };
}

export async function createQueue(server: TestServer, queue: Partial<NewReviewQueue> = {}): Promise<ReviewQueueDetail> {
  const { status, body } = await server.request('POST', '/v1/review-queues', { body: { name: 'a queue', ...queue } });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
}

export async function next(server: TestServer, queue: string, { headers }: Partial<Reviewer> = {}, skipped = false): Promise<NextReview> {
  const { status, body } = await server.request('POST', `/v1/review-queues/${queue}/next`, {
    body: { skipped },
    ...(headers && { headers }),
  });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
}

export const answer = (server: TestServer, queue: string, position: number | string, body: object, { headers }: Partial<Reviewer> = {}) =>
  server.request('PUT', `/v1/review-queues/${queue}/items/${position}`, { body, ...(headers && { headers }) });

/** Answers everything that the reviewer gets. Returns the rollouts in their order. */
export async function answerAll(
  server: TestServer,
  queue: string,
  choiceOf: (item: ReviewItem) => string | null,
  reviewer?: Reviewer,
): Promise<string[]> {
  const seen: string[] = [];
  for (;;) {
    const { item } = await next(server, queue, reviewer);
    if (item === null) return seen;
    seen.push(...item.rollouts);
    const { status, body } = await answer(server, queue, item.position, { choice: choiceOf(item) }, reviewer);
    if (status !== 200) throw new Error(JSON.stringify(body));
  }
}
