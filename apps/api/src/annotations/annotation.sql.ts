import type { AnnotationBody, SavedViewBody } from '@palestra/protocol';
import type pg from 'pg';

export interface AnnotationRow {
  id: string;
  rollout: string;
  from_index: number | null;
  to_index: number | null;
  /** One of VERDICTS; of a review: a label of its queue, or `chosen`, `rejected`, `tied`. */
  verdict: string | null;
  score: number | null;
  tag: string | null;
  note: string | null;
  author: string;
  queue: { id: string; name: string } | null;
  created_at: Date;
}

/**
 * Null when the rollout was erased: its head is locked until the row is written. Increments the run's version, because queries by tag,
 * verdict, note and author have other results now. Plan: primary keys.
 */
export async function insertAnnotation(
  pool: pg.Pool,
  target: { orgId: string; seq: string; runSeq: number; rollout: string },
  body: AnnotationBody,
  author: string,
): Promise<AnnotationRow | null> {
  const { rows } = await pool.query<AnnotationRow>(
    `WITH held AS MATERIALIZED (SELECT seq FROM rollout_heads WHERE seq = $2 FOR KEY SHARE),
     bumped AS (UPDATE runs SET version = version + 1 WHERE seq = $3 AND EXISTS (SELECT FROM held))
     INSERT INTO annotations (org_id, rollout_seq, run_seq, from_index, to_index, verdict, score, tag, note, author)
     SELECT $1, seq, $3, $5, $6, $7, $8, $9, $10, $11 FROM held
     RETURNING id, $4::text AS rollout, from_index, to_index, verdict, score, tag, note, author, NULL AS queue, created_at`,
    [
      target.orgId,
      target.seq,
      target.runSeq,
      target.rollout,
      body.from_index,
      body.to_index ?? body.from_index,
      body.verdict,
      body.score,
      body.tag,
      body.note,
      author,
    ],
  );
  return rows[0] ?? null;
}

export interface AnnotationFilter {
  orgId: string;
  /** Null: every run of the organisation. */
  runSeq: number | null;
  /** Of the run. */
  rolloutSeq: string | null;
  tag: string | null;
  /** `created_at` with all its digits, and id, of the last row of the page before. */
  after: { at: string; id: string } | null;
  limit: number;
}

/** `shown`: not while its run or rollout is being erased. */
export type ListedAnnotation = AnnotationRow & { at: string; shown: boolean };

const NEWEST = { at: 'infinity', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };

/**
 * Newest first. Plan: backwards the index of the organisation, of its tag, of the run, of its tag or of the rollout from the cursor, at most
 * `limit` rows; a tag of a rollout reads the annotations of the rollout. As in run-order.sql.ts, a comparison with one bound leaves
 * PostgreSQL no other plan.
 */
export async function selectAnnotations(pool: pg.Pool, filter: AnnotationFilter): Promise<ListedAnnotation[]> {
  const { orgId, runSeq, rolloutSeq, tag, limit } = filter;
  const owner = rolloutSeq !== null ? 'rollout_seq' : runSeq !== null ? 'run_seq' : 'org_id';
  const { at, id } = filter.after ?? NEWEST;
  const isRange = tag !== null && rolloutSeq === null;
  const keys = isRange ? [owner, 'tag'] : [owner];
  const order = (columns: readonly string[]) => columns.map((column) => `${column} DESC`).join(', ');
  const range = `(${keys.join(', ')}, created_at, id) < (${isRange ? '$1, $2' : '$1'}, $3, $4)`;
  const condition = rolloutSeq === null ? range : `rollout_seq = $1 AND ($2::text IS NULL OR tag = $2) AND (created_at, id) < ($3, $4)`;
  const { rows } = await pool.query<ListedAnnotation>(
    `SELECT a.id, h.id AS rollout, a.from_index, a.to_index, a.verdict, a.score, a.tag, a.note, a.author, a.created_at, a.created_at::text AS at,
       (SELECT json_build_object('id', q.id, 'name', q.name) FROM review_answers w JOIN review_queues q ON q.id = w.queue_id WHERE w.id = a.answer_id) AS queue,
       h.id IS NOT NULL AND (SELECT deleted_at IS NULL FROM runs WHERE seq = a.run_seq) AS shown
     FROM (SELECT * FROM annotations WHERE ${condition} ORDER BY ${order([...keys, 'created_at', 'id'])} LIMIT $5) a
     LEFT JOIN LATERAL (SELECT id FROM rollout_heads WHERE seq = a.rollout_seq OFFSET 0) h ON true
     WHERE a.${owner} = $1 AND ($2::text IS NULL OR a.tag = $2) ORDER BY a.created_at DESC, a.id DESC`,
    [rolloutSeq ?? runSeq ?? orgId, tag, at, id, limit],
  );
  return rows;
}

/** `review`: it is the answer of a review, which only its queue changes. Plan: annotations_pkey. */
export async function deleteAnnotation(pool: pg.Pool, orgId: string, id: string): Promise<'deleted' | 'missing' | 'review'> {
  const { rows } = await pool.query<{ answer_id: string | null }>(
    `WITH gone AS (DELETE FROM annotations WHERE org_id = $1 AND id = $2 AND answer_id IS NULL RETURNING run_seq),
       bumped AS (UPDATE runs SET version = version + 1 WHERE seq IN (SELECT run_seq FROM gone))
     SELECT answer_id FROM annotations WHERE org_id = $1 AND id = $2`,
    [orgId, id],
  );
  if (!rows[0]) return 'missing';
  return rows[0].answer_id === null ? 'deleted' : 'review';
}

/**
 * Writes the annotations of a queue's answers that have none, of one item or of all: the label as the verdict, or of a pair `chosen` and
 * `rejected`, or `tied`. Plan: review_answers_pkey, per answer primary keys and annotations_answer_id_idx.
 */
export async function insertReviewAnnotations(client: Pick<pg.Pool, 'query'>, queueId: string, position: number | null): Promise<void> {
  await client.query(
    `WITH noted AS MATERIALIZED (
       SELECT a.id, a.org_id, a.comment, a.author, a.answered_at, h.seq, h.run_seq,
         CASE a.choice || x.side WHEN 'aa' THEN 'chosen' WHEN 'bb' THEN 'chosen' WHEN 'ab' THEN 'rejected' WHEN 'ba' THEN 'rejected' ELSE 'tied' END AS better,
         i.other_seq IS NOT NULL AS is_pair, a.choice
       FROM review_answers a JOIN review_items i ON i.queue_id = a.queue_id AND i.position = a.position
         CROSS JOIN LATERAL (VALUES (i.rollout_seq, 'a'), (i.other_seq, 'b')) x(seq, side)
         JOIN rollout_heads h ON h.seq = x.seq
       WHERE a.queue_id = $1 AND ($2::int IS NULL OR a.position = $2) AND a.choice IS NOT NULL AND h.run_seq IS NOT NULL
         AND NOT EXISTS (SELECT FROM annotations n WHERE n.answer_id = a.id)
       ORDER BY h.id FOR KEY SHARE OF h),
     written AS (
       INSERT INTO annotations (org_id, rollout_seq, run_seq, verdict, note, author, created_at, answer_id)
       SELECT org_id, seq, run_seq, CASE WHEN is_pair THEN better ELSE choice END, comment, author, answered_at, id FROM noted RETURNING run_seq)
     UPDATE runs SET version = version + 1 WHERE seq IN (SELECT run_seq FROM written)`,
    [queueId, position],
  );
}

export interface ViewRow {
  id: string;
  run: string | null;
  name: string;
  query: string;
  lens: string | null;
  state: Record<string, unknown>;
  author: string;
  created_at: Date;
}
const VIEW = '(SELECT id FROM runs WHERE seq = v.run_seq) AS run, v.id, v.name, v.query, v.lens, v.state, v.author, v.created_at';

export async function insertView(
  pool: pg.Pool,
  orgId: string,
  runSeq: number | null,
  body: Omit<SavedViewBody, 'run'>,
  author: string,
): Promise<ViewRow> {
  const { rows } = await pool.query<ViewRow>(
    `WITH v AS (INSERT INTO saved_views (org_id, run_seq, name, query, lens, state, author) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *) SELECT ${VIEW} FROM v`,
    [orgId, runSeq, body.name, body.query, body.lens, body.state, author],
  );
  return rows[0]!;
}

/** By name. Plan: saved_views_org_id_run_seq_idx. */
export async function selectViews(pool: pg.Pool, orgId: string, runSeq: number | null): Promise<ViewRow[]> {
  const { rows } = await pool.query<ViewRow>(
    `SELECT ${VIEW} FROM saved_views v WHERE v.org_id = $1 AND ($2::int IS NULL OR v.run_seq = $2 OR v.run_seq IS NULL) ORDER BY v.name, v.id LIMIT 1000`,
    [orgId, runSeq],
  );
  return rows;
}

export async function updateView(
  pool: pg.Pool,
  orgId: string,
  id: string,
  runSeq: number | null,
  body: Omit<SavedViewBody, 'run'>,
): Promise<ViewRow | null> {
  const { rows } = await pool.query<ViewRow>(
    `WITH v AS (UPDATE saved_views SET run_seq = $3, name = $4, query = $5, lens = $6, state = $7 WHERE org_id = $1 AND id = $2 RETURNING *) SELECT ${VIEW} FROM v`,
    [orgId, id, runSeq, body.name, body.query, body.lens, body.state],
  );
  return rows[0] ?? null;
}

export async function deleteView(pool: pg.Pool, orgId: string, id: string): Promise<boolean> {
  const { rowCount } = await pool.query('DELETE FROM saved_views WHERE org_id = $1 AND id = $2', [orgId, id]);
  return rowCount === 1;
}

export async function selectUserName(pool: pg.Pool, userId: string): Promise<string> {
  const { rows } = await pool.query<{ name: string }>('SELECT name FROM users WHERE id = $1', [userId]);
  return rows[0]?.name ?? userId;
}
