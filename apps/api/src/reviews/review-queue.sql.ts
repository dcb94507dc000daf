import type { ReviewMode } from '@palestra/protocol';
import type pg from 'pg';

type Queryable = Pick<pg.Pool, 'query'>;

export interface QueueRow {
  id: string;
  org_id: string;
  run_seq: number | null;
  run: string | null;
  name: string;
  query: string;
  seed: number;
  mode: ReviewMode;
  labels: string[];
  criteria: string | null;
  overlap: number;
  reviewers: { id: string; name: string }[];
  user_id: string;
  author: string;
  created_at: Date;
  closed_at: Date | null;
  items: number;
}

export type NewQueue = Omit<QueueRow, 'id' | 'run' | 'reviewers' | 'created_at' | 'closed_at' | 'items'> & { reviewers: string[] };

const COLUMNS = `q.id, q.org_id, q.run_seq, u.name AS run, q.name, q.query, q.seed, q.mode, q.labels, q.criteria, q.overlap, q.user_id, q.author, q.created_at, q.closed_at,
  COALESCE((SELECT json_agg(json_build_object('id', p.id, 'name', p.name) ORDER BY p.name) FROM users p WHERE p.id = ANY(q.reviewers)), '[]') AS reviewers,
  (SELECT count(*)::int FROM review_items i WHERE i.queue_id = q.id) AS items`;
/** A queue of a run that is being erased is gone for readers. */
const FROM =
  'FROM review_queues q LEFT JOIN runs u ON u.seq = q.run_seq WHERE q.org_id = $1 AND (q.run_seq IS NULL OR u.deleted_at IS NULL)';

/** Newest first. Plan: review_queues_org_id_created_at_idx, then per queue review_items_pkey. */
export async function selectQueues(pool: Queryable, orgId: string, limit: number): Promise<QueueRow[]> {
  const { rows } = await pool.query<QueueRow>(`SELECT ${COLUMNS} ${FROM} ORDER BY q.created_at DESC, q.id LIMIT $2`, [orgId, limit]);
  return rows;
}

/** Plan: review_queues_pkey. */
export async function selectQueue(pool: Queryable, orgId: string, id: string): Promise<QueueRow | null> {
  const { rows } = await pool.query<QueueRow>(`SELECT ${COLUMNS} ${FROM} AND q.id = $2`, [orgId, id]);
  return rows[0] ?? null;
}

/** What the organisation has already. Plan: review_queues_org_id_created_at_idx, review_items_pkey. */
export async function countQueues(pool: Queryable, orgId: string): Promise<{ queues: number; items: number }> {
  const { rows } = await pool.query<{ queues: number; items: number }>(
    `SELECT count(*)::int AS queues, COALESCE(sum((SELECT count(*) FROM review_items i WHERE i.queue_id = q.id)), 0)::int AS items
     FROM review_queues q WHERE q.org_id = $1`,
    [orgId],
  );
  return rows[0]!;
}

/** Those of the users that are members now. Plan: memberships_pkey. */
export async function selectMembers(pool: Queryable, orgId: string, users: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ user_id: string }>(
    'SELECT user_id FROM memberships WHERE org_id = $1 AND user_id = ANY($2::uuid[])',
    [orgId, users],
  );
  return rows.map(({ user_id }) => user_id);
}

export async function insertQueue(client: Queryable, queue: NewQueue): Promise<string> {
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO review_queues (org_id, run_seq, name, query, seed, mode, labels, criteria, overlap, reviewers, user_id, author)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id`,
    [
      queue.org_id,
      queue.run_seq,
      queue.name,
      queue.query,
      queue.seed,
      queue.mode,
      queue.labels,
      queue.criteria,
      queue.overlap,
      queue.reviewers,
      queue.user_id,
      queue.author,
    ],
  );
  return rows[0]!.id;
}

export interface Sample {
  orgId: string;
  queueId: string;
  runSeqs: readonly number[];
  seed: number;
  size: number;
  mode: ReviewMode;
  /** A condition on `r`. Its parameters are numbered from `SAMPLE_PARAMETER`. */
  where: { sql: string; values: readonly unknown[] };
}
export const SAMPLE_PARAMETER = 6;

/** Order by a hash of seed and rollout, which is the same on every server and does not depend on when rollouts arrived. */
const hashOf = (value: string) => `md5($4::int || ':' || ${value})`;

const SAMPLES: Record<ReviewMode, (where: string) => string> = {
  labels: (where) => `SELECT r.seq, NULL::bigint AS other, row_number() OVER (ORDER BY ${hashOf('r.id')}, r.seq) AS position
     FROM rollouts r WHERE r.run_seq = ANY($3::int[]) AND (${where}) ORDER BY position LIMIT $5`,
  // Two random rollouts of each group. Groups have a hash of their own, because the smallest one of their rollouts would prefer large groups.
  pairs: (where) => `SELECT p.seqs[1] AS seq, p.seqs[2] AS other,
       row_number() OVER (ORDER BY ${hashOf("p.group_key || ':' || p.phase || ':' || p.step")}, p.run_seq) AS position
     FROM (SELECT r.run_seq, r.group_key, r.phase, COALESCE(r.step, -1) AS step, (array_agg(r.seq ORDER BY ${hashOf('r.id')}, r.seq))[1:2] AS seqs
       FROM rollouts r WHERE r.run_seq = ANY($3::int[]) AND r.group_key IS NOT NULL AND (${where}) GROUP BY 1, 2, 3, 4 HAVING count(*) > 1) p
     ORDER BY position LIMIT $5`,
};

/**
 * Fills the queue and returns its number of items. Plan: Index Scan using rollouts_run_seq_idx with the condition, then a sort of the
 * matching rollouts.
 */
export async function insertSample(client: Queryable, { orgId, queueId, runSeqs, seed, size, mode, where }: Sample): Promise<number> {
  const { rowCount } = await client.query(
    `INSERT INTO review_items (org_id, queue_id, position, rollout_seq, other_seq)
     SELECT $1, $2, s.position, s.seq, s.other FROM (${SAMPLES[mode](where.sql)}) s`,
    [orgId, queueId, runSeqs, seed, size, ...where.values],
  );
  return rowCount ?? 0;
}

/** False when the organisation has no such queue. Its annotations go with it. Plan: primary keys. */
export async function deleteQueue(pool: Queryable, orgId: string, id: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `WITH noted AS (SELECT DISTINCT n.run_seq FROM review_answers a JOIN annotations n ON n.answer_id = a.id WHERE a.queue_id = $2 AND a.org_id = $1),
     bumped AS (UPDATE runs SET version = version + 1 WHERE seq IN (SELECT run_seq FROM noted))
     DELETE FROM review_queues WHERE org_id = $1 AND id = $2`,
    [orgId, id],
  );
  return rowCount === 1;
}

/** Plan: review_queues_pkey. */
export async function closeQueue(client: Queryable, orgId: string, id: string): Promise<void> {
  await client.query('UPDATE review_queues SET closed_at = COALESCE(closed_at, now()) WHERE org_id = $1 AND id = $2', [orgId, id]);
}

/** Items whose answers have the same counts. */
export interface PatternRow {
  queue_id: string;
  counts: Record<string, number>;
  items: number;
}

/** Plan: review_answers_pkey, once per queue. */
export async function selectPatterns(pool: Queryable, queueIds: readonly string[]): Promise<PatternRow[]> {
  const { rows } = await pool.query<PatternRow>(
    `SELECT queue_id, counts, count(*)::int AS items FROM (
       SELECT queue_id, position, jsonb_object_agg(choice, n) AS counts FROM (
         SELECT queue_id, position, choice, count(*)::int AS n FROM review_answers WHERE queue_id = ANY($1::uuid[]) AND choice IS NOT NULL GROUP BY 1, 2, 3) c
       GROUP BY 1, 2) p
     GROUP BY 1, 2 ORDER BY 1, 2`,
    [queueIds],
  );
  return rows;
}

export interface ProgressRow {
  reviewer: string;
  answered: number;
  skipped: number;
  last_at: Date | null;
}

/** Most answers first. Plan: review_answers_pkey. */
export async function selectProgress(pool: Queryable, queueId: string): Promise<ProgressRow[]> {
  const { rows } = await pool.query<ProgressRow>(
    `SELECT max(author) AS reviewer, count(choice)::int AS answered, (count(*) FILTER (WHERE skipped))::int AS skipped, max(answered_at) AS last_at
     FROM review_answers WHERE queue_id = $1 AND (choice IS NOT NULL OR skipped) GROUP BY user_id ORDER BY 2 DESC, 1 LIMIT 1000`,
    [queueId],
  );
  return rows;
}
