import type pg from 'pg';

type Queryable = Pick<pg.Pool, 'query'>;

export interface ItemRow {
  position: number;
  rollouts: string[];
  answers: AnswerRow[];
}

export interface AnswerRow {
  user_id: string;
  author: string;
  choice: string | null;
  comment: string | null;
  skipped: boolean;
  answered_at: Date | null;
}

/** An item with all its answers. Plan: primary keys. */
export async function selectItem(pool: Queryable, queueId: string, position: number): Promise<ItemRow | null> {
  const { rows } = await pool.query<Omit<ItemRow, 'answers'>>(
    `SELECT i.position, array_remove(ARRAY[(SELECT h.id FROM rollout_heads h WHERE h.seq = i.rollout_seq), (SELECT h.id FROM rollout_heads h WHERE h.seq = i.other_seq)], NULL) AS rollouts
     FROM review_items i WHERE i.queue_id = $1 AND i.position = $2`,
    [queueId, position],
  );
  if (!rows[0]) return null;
  const answers = await pool.query<AnswerRow>(
    `SELECT user_id, author, choice, comment, skipped, answered_at FROM review_answers WHERE queue_id = $1 AND position = $2 ORDER BY answered_at, user_id`,
    [queueId, position],
  );
  return { ...rows[0], answers: answers.rows };
}

/** Changes of one queue's answers follow each other, so that two reviewers never count the same free answer. Held for one transaction. */
export async function lockQueue(client: Queryable, queueId: string): Promise<{ overlap: number; closed_at: Date | null } | null> {
  const { rows } = await client.query<{ overlap: number; closed_at: Date | null }>(
    'SELECT overlap, closed_at FROM review_queues WHERE id = $1 FOR NO KEY UPDATE',
    [queueId],
  );
  return rows[0] ?? null;
}

/** Locks the rollouts of an item as uploads and erasure do, before anything else. Plan: primary keys. */
export async function lockRollouts(client: Queryable, queueId: string, position: number): Promise<void> {
  await client.query(
    `SELECT FROM rollout_heads WHERE seq IN (SELECT unnest(ARRAY[rollout_seq, other_seq]) FROM review_items WHERE queue_id = $1 AND position = $2)
     ORDER BY id FOR KEY SHARE`,
    [queueId, position],
  );
}

/** Answers and live claims of others than `$2`. */
const TAKEN = `(SELECT count(*) FROM review_answers o WHERE o.queue_id = i.queue_id AND o.position = i.position AND o.user_id <> $2
  AND (o.choice IS NOT NULL OR o.claimed_until > now()))`;

export interface Reviewer {
  queueId: string;
  orgId: string;
  userId: string;
  name: string;
}

/**
 * Reserves the first item that the reviewer has not answered and that needs another answer. Returns null without such an item. A reviewer
 * has one reservation per queue. The queue is locked. Plan: review_items_pkey in its order, per item a range of review_answers_pkey.
 */
export async function claimNext(
  client: Queryable,
  { queueId, orgId, userId, name }: Reviewer,
  { overlap, withSkipped, claimMs }: { overlap: number; withSkipped: boolean; claimMs: number },
): Promise<number | null> {
  const { rows } = await client.query<{ position: number }>(
    `SELECT i.position FROM review_items i WHERE i.queue_id = $1
       AND NOT EXISTS (SELECT FROM review_answers m WHERE m.queue_id = i.queue_id AND m.position = i.position AND m.user_id = $2
         AND (m.choice IS NOT NULL OR (m.skipped AND NOT $4::boolean)))
       AND ${TAKEN} < $3
     ORDER BY i.position LIMIT 1`,
    [queueId, userId, overlap, withSkipped],
  );
  const position = rows[0]?.position ?? null;
  await client.query(
    `DELETE FROM review_answers WHERE queue_id = $1 AND user_id = $2 AND choice IS NULL AND NOT skipped AND position IS DISTINCT FROM $3`,
    [queueId, userId, position],
  );
  if (position === null) return null;
  await client.query(
    `INSERT INTO review_answers AS a (org_id, queue_id, position, user_id, author, claimed_until) VALUES ($1, $2, $3, $4, $5, now() + $6 * interval '1 ms')
     ON CONFLICT (queue_id, position, user_id) DO UPDATE SET claimed_until = EXCLUDED.claimed_until`,
    [orgId, queueId, position, userId, name, claimMs],
  );
  return position;
}

/** Whether the reviewer may answer the item; null if there is no such item. The queue is locked. Plan: primary keys. */
export async function hasRoom(client: Queryable, queueId: string, userId: string, position: number, overlap: number) {
  const { rows } = await client.query<{ free: boolean }>(
    `SELECT ${TAKEN} < $4 AS free FROM review_items i WHERE i.queue_id = $1 AND i.position = $3`,
    [queueId, userId, position, overlap],
  );
  return rows[0]?.free ?? null;
}

/** Stores or replaces an answer; without a choice the item is skipped. Annotations of the answer before are deleted. */
export async function saveAnswer(
  client: Queryable,
  { queueId, orgId, userId, name }: Reviewer,
  position: number,
  { choice, comment }: { choice: string | null; comment: string | null },
): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO review_answers AS a (org_id, queue_id, position, user_id, author, choice, comment, skipped, answered_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $6::text IS NULL, clock_timestamp())
     ON CONFLICT (queue_id, position, user_id) DO UPDATE SET choice = EXCLUDED.choice, comment = EXCLUDED.comment, skipped = EXCLUDED.skipped,
       author = EXCLUDED.author, answered_at = EXCLUDED.answered_at, claimed_until = NULL
     RETURNING a.id`,
    [orgId, queueId, position, userId, name, choice, comment],
  );
  await client.query(
    `WITH gone AS (DELETE FROM annotations WHERE answer_id = $1 RETURNING run_seq)
     UPDATE runs SET version = version + 1 WHERE seq IN (SELECT run_seq FROM gone)`,
    [rows[0]!.id],
  );
}

/** Number of answers of an item. Plan: review_answers_pkey. */
export async function countAnswers(client: Queryable, queueId: string, position: number): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    'SELECT count(choice)::int AS n FROM review_answers WHERE queue_id = $1 AND position = $2',
    [queueId, position],
  );
  return rows[0]!.n;
}

export interface MyProgress {
  complete: number;
  answered: number;
  skipped: number;
}

/** Plan: review_answers_pkey. */
export async function selectMyProgress(pool: Queryable, queueId: string, userId: string, overlap: number): Promise<MyProgress> {
  const { rows } = await pool.query<MyProgress>(
    `SELECT (count(*) FILTER (WHERE n >= $3))::int AS complete, COALESCE(sum(answered), 0)::int AS answered, COALESCE(sum(skipped), 0)::int AS skipped
     FROM (SELECT count(choice) AS n, count(choice) FILTER (WHERE user_id = $2) AS answered, count(*) FILTER (WHERE skipped AND user_id = $2) AS skipped
       FROM review_answers WHERE queue_id = $1 GROUP BY position) a`,
    [queueId, userId, overlap],
  );
  return rows[0]!;
}

/** The item that the reviewer decided before this one; null: none. Plan: review_answers_queue_id_user_id_answered_at_idx. */
export async function selectPrevious(pool: Queryable, queueId: string, userId: string, before: Date | null, position: number) {
  const { rows } = await pool.query<{ position: number }>(
    `SELECT position FROM review_answers WHERE queue_id = $1 AND user_id = $2 AND (choice IS NOT NULL OR skipped) AND position <> $4
       AND answered_at <= COALESCE($3::timestamptz, 'infinity') ORDER BY answered_at DESC LIMIT 1`,
    [queueId, userId, before, position],
  );
  return rows[0]?.position ?? null;
}
