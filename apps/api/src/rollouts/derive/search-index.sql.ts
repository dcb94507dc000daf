import type pg from 'pg';

/** Only so much of a message is searched, characters (dashboard.md 4.2). */
const MAX_CHARACTERS = 65_536;

/**
 * A text as plain words: PostgreSQL's parser would keep hosts, paths and numbers with signs whole, so that `usr` was not found in
 * `/usr/bin`. An SQL expression.
 */
export const plainWords = (text: string) => `translate(${text}, $p$!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~$p$, repeat(' ', 32))`;

/**
 * Words that stand for where a message is: one index then answers "in this run, said by the assistant". No text that people
 * write can spell them: the parser of PostgreSQL drops control characters.
 */
export const runWord = (runSeq: number | string) => `\u0001r${runSeq}`;
export const typeWord = (type: string) => `\u0001t${type}`;

/**
 * Indexes messages of some rollouts whose messages grew. Plan: Index Scan using rollout_heads_unsearched_idx; per rollout an Index Scan of its
 * partition's primary key and of rollout_search_pkey.
 */
const INDEX = `
WITH head AS MATERIALIZED (
  SELECT seq, day, run_seq, revision FROM rollout_heads WHERE unsearched AND run_seq IS NOT NULL ORDER BY seq LIMIT $1
), word AS (
  INSERT INTO rollout_search (rollout_seq, index, words)
  SELECT h.seq, m.index, array_to_tsvector(array_agg(DISTINCT E'\\x01t' || m.type) || (E'\\x01r' || h.run_seq)) ||
    to_tsvector('simple', ${plainWords(`left(string_agg(concat_ws(' ', m.name, m.summary, m.content), E'\\n' ORDER BY m.event_id), ${MAX_CHARACTERS})`)})
  FROM head h JOIN rollout_messages m ON m.day = h.day AND m.rollout_seq = h.seq
  WHERE NOT EXISTS (SELECT FROM rollout_search s WHERE s.rollout_seq = h.seq AND s.index = m.index)
  GROUP BY h.seq, h.run_seq, m.index
  ON CONFLICT DO NOTHING
), done AS (
  UPDATE rollout_heads SET unsearched = false WHERE seq IN (
    SELECT h.seq FROM rollout_heads h JOIN head USING (seq) WHERE h.revision = head.revision FOR UPDATE OF h SKIP LOCKED)
)
SELECT count(*)::int AS rollouts FROM head`;

/** Answers how many rollouts it looked at. */
export async function indexMessages(pool: pg.Pool, limit: number): Promise<number> {
  const { rows } = await pool.query<{ rollouts: number }>({ name: 'rollouts-search-index', text: INDEX, values: [limit] });
  return rows[0]!.rollouts;
}
