import type pg from 'pg';
import { inTransaction } from '../platform/database/transaction.ts';

/** Rollouts of a run by id. Plan: rollout_heads_org_id_id_key, one probe per id. */
export async function selectSeqs(pool: pg.Pool, orgId: string, runSeq: number, ids: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ seq: string }>(
    'SELECT seq FROM rollout_heads WHERE org_id = $1 AND id = ANY($3::uuid[]) AND run_seq = $2',
    [orgId, runSeq, ids],
  );
  return rows.map(({ seq }) => seq);
}

/**
 * Annotates whole rollouts that do not have the tag, or whose latest verdict of the author is another one. `found`: the rollouts that were
 * not erased meanwhile; their heads are locked until the annotations are written, in the order of ingest. Requests of one organisation wait for each other, so that
 * two equal ones annotate once. Plan: rollout_heads_pkey and annotations_rollout_seq_idx, one probe of each per rollout.
 */
export function annotateRollouts(
  pool: pg.Pool,
  { orgId, runSeq, seqs }: { orgId: string; runSeq: number; seqs: readonly string[] },
  { verdict, tag, author }: { verdict: string | null; tag: string | null; author: string },
): Promise<{ found: number; annotated: number }> {
  return inTransaction(pool, async (client) => {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('bulk annotation ' || $1::text, 0))`, [orgId]);
    const { rows } = await client.query<{ found: number; annotated: number }>(
      `WITH held AS MATERIALIZED (
         SELECT seq FROM rollout_heads WHERE seq = ANY($3::bigint[]) AND org_id = $1 AND run_seq = $2 ORDER BY id FOR KEY SHARE),
       added AS (
         INSERT INTO annotations (org_id, rollout_seq, run_seq, verdict, tag, author)
         SELECT $1, h.seq, $2, $4, $5, $6 FROM held h WHERE CASE
           -- Not EXISTS, which PostgreSQL may answer by reading every annotation with the tag.
           WHEN $5::text IS NOT NULL THEN (
             SELECT a.id FROM annotations a WHERE a.rollout_seq = h.seq AND a.from_index IS NULL AND a.tag = $5 LIMIT 1) IS NULL
           ELSE $4::text IS DISTINCT FROM (
             SELECT a.verdict FROM annotations a WHERE a.rollout_seq = h.seq AND a.from_index IS NULL AND a.verdict IS NOT NULL AND a.author = $6
             ORDER BY a.created_at DESC, a.id DESC LIMIT 1) END
         RETURNING id)
       SELECT (SELECT count(*)::int FROM held) AS found, (SELECT count(*)::int FROM added) AS annotated`,
      [orgId, runSeq, seqs, verdict, tag, author],
    );
    const { found, annotated } = rows[0]!;
    // Queries by tag, verdict and author have other results now.
    if (annotated > 0) await client.query('UPDATE runs SET version = version + 1 WHERE seq = $1', [runSeq]);
    return { found, annotated };
  });
}
