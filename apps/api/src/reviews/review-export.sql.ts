import type pg from 'pg';

export interface ReviewedItem {
  position: number;
  rollout_seq: string;
  other_seq: string | null;
  answers: { reviewer: string; choice: string; comment: string | null; at: string }[];
}

/** Items whose answers are known to all: complete, or of a closed queue. Plan: review_items_pkey from `after`, per item review_answers_pkey. */
export async function selectReviewedItems(
  pool: pg.Pool,
  orgId: string,
  queueId: string,
  after: number,
  limit: number,
): Promise<ReviewedItem[]> {
  const { rows } = await pool.query<ReviewedItem>(
    `SELECT i.position, i.rollout_seq::text, i.other_seq::text, a.answers
     FROM review_items i JOIN review_queues q ON q.id = i.queue_id CROSS JOIN LATERAL (
       SELECT count(*) AS n, json_agg(json_build_object('reviewer', a.author, 'choice', a.choice, 'comment', a.comment,
           'at', to_char(a.answered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY a.answered_at, a.user_id) AS answers
       FROM review_answers a WHERE a.queue_id = i.queue_id AND a.position = i.position AND a.choice IS NOT NULL) a
     WHERE i.queue_id = $2 AND q.org_id = $1 AND i.position > $3 AND a.n > 0 AND (a.n >= q.overlap OR q.closed_at IS NOT NULL)
     ORDER BY i.position LIMIT $4`,
    [orgId, queueId, after, limit],
  );
  return rows;
}
