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
 * A condition on `s`: a message at these places that has these words, both SQL of a `tsquery`. A text without a word, of signs alone, say, is
 * found nowhere; by itself `&&` would leave it out, and find every message of the places.
 */
export const foundBy = (places: string, words: string) => `numnode(${words}) > 0 AND s.words @@ (${places} && ${words})`;

/** A rollout that was sealed before it was searchable, since its start event came later: its words are in no row any more. */
const LATE = `h.sealed_at IS NOT NULL AND NOT EXISTS (SELECT FROM rollout_search s WHERE s.rollout_seq = h.seq)`;

/**
 * Indexes messages of some rollouts whose messages grew. Two clients may have given one index to two messages, of which one comes later: words of an
 * index are made again where it has several messages, and added to those of a transcript. Plan: Index Scan using rollout_heads_unsearched_idx; per
 * rollout an Index Scan of its partition's primary key and of rollout_search_pkey.
 */
const INDEX = `
WITH head AS MATERIALIZED (
  SELECT seq, day, run_seq, revision, sealed_at IS NOT NULL AS sealed FROM rollout_heads h WHERE unsearched AND run_seq IS NOT NULL AND NOT (${LATE}) ORDER BY seq LIMIT $1
), several AS MATERIALIZED (
  SELECT h.seq, m.index FROM head h JOIN rollout_messages m ON m.day = h.day AND m.rollout_seq = h.seq GROUP BY h.seq, m.index HAVING count(*) > 1
), word AS (
  INSERT INTO rollout_search AS s (rollout_seq, index, words)
  SELECT h.seq, m.index, array_to_tsvector(array_agg(DISTINCT E'\\x01t' || m.type) || (E'\\x01r' || h.run_seq)) ||
    to_tsvector('simple', ${plainWords(`left(string_agg(concat_ws(' ', m.name, m.summary, m.content), E'\\n' ORDER BY m.event_id), ${MAX_CHARACTERS})`)})
  FROM head h JOIN rollout_messages m ON m.day = h.day AND m.rollout_seq = h.seq
  WHERE h.sealed OR (h.seq, m.index) IN (SELECT seq, index FROM several)
    OR NOT EXISTS (SELECT FROM rollout_search s WHERE s.rollout_seq = h.seq AND s.index = m.index)
  GROUP BY h.seq, h.run_seq, m.index ORDER BY h.seq, m.index
  ON CONFLICT (rollout_seq, index) DO UPDATE SET words = CASE WHEN (SELECT sealed FROM head WHERE head.seq = s.rollout_seq) THEN s.words || excluded.words ELSE excluded.words END
    WHERE s.words <> excluded.words
      AND NOT ((SELECT sealed FROM head WHERE head.seq = s.rollout_seq) AND tsvector_to_array(excluded.words) <@ tsvector_to_array(s.words))
)
SELECT array_agg(seq) AS seqs, array_agg(revision) AS revisions FROM head`;

/**
 * A statement of its own: PostgreSQL 18 (18.4 still) crashes when a row that is to be locked changed meanwhile and the same statement prunes
 * partitions as it runs, which the one above does. Whoever dies between the two indexes the same again, which changes nothing.
 */
const DONE = `
UPDATE rollout_heads SET unsearched = false WHERE seq IN (
  SELECT h.seq FROM rollout_heads h JOIN unnest($1::bigint[], $2::int[]) AS head(seq, revision) ON h.seq = head.seq AND h.revision = head.revision
  ORDER BY h.seq FOR UPDATE OF h SKIP LOCKED)`;

/**
 * Words of rollouts that were erased while they were indexed, whose rows the erasing did not see. It waits for one that is under way; whoever comes later sees the rows.
 * A statement of its own, too: with rows of words held it could wait for an erasing that waits for those. Plan: primary keys.
 */
const ERASED = `
WITH held AS MATERIALIZED (SELECT seq FROM rollout_heads WHERE seq = ANY($1::bigint[]) ORDER BY id FOR KEY SHARE)
DELETE FROM rollout_search WHERE rollout_seq = ANY(ARRAY(SELECT unnest($1::bigint[]) EXCEPT SELECT seq FROM held))`;

/** Answers how many rollouts it looked at. */
export async function indexMessages(pool: pg.Pool, limit: number): Promise<number> {
  const { rows } = await pool.query<{ seqs: string[] | null; revisions: number[] }>({
    name: 'rollouts-search-index',
    text: INDEX,
    values: [limit],
  });
  const { seqs, revisions } = rows[0]!;
  if (seqs === null) return 0;
  await pool.query({ name: 'rollouts-search-erased', text: ERASED, values: [seqs] });
  await pool.query({ name: 'rollouts-search-done', text: DONE, values: [seqs, revisions] });
  return seqs.length;
}

export interface LateRollout {
  seq: string;
  run_seq: number;
}

/** Plan: Index Scan using rollout_heads_unsearched_idx, whose rows are few once `indexMessages` is through. */
export async function selectLate(pool: pg.Pool, limit: number): Promise<LateRollout[]> {
  const { rows } = await pool.query<LateRollout>({
    name: 'rollouts-search-late',
    text: `SELECT h.seq::text, h.run_seq FROM rollout_heads h WHERE h.unsearched AND h.run_seq IS NOT NULL AND ${LATE} ORDER BY h.seq LIMIT $1`,
    values: [limit],
  });
  return rows;
}

/** `text`: name, summary and content of a message. */
export interface SearchedMessage {
  event_id: string;
  index: number;
  type: string;
  text: string;
}

/** The words that `indexMessages` makes of rows, of messages that are given. Plan: Insert with conflict arbiter rollout_search_pkey. */
export async function insertWords(
  client: Pick<pg.Pool, 'query'>,
  { seq, run_seq }: LateRollout,
  messages: readonly SearchedMessage[],
): Promise<void> {
  await client.query({
    name: 'rollouts-search-words',
    text: `INSERT INTO rollout_search (rollout_seq, index, words)
      SELECT $1::bigint, m.index, array_to_tsvector(array_agg(DISTINCT E'\\x01t' || m.type) || (E'\\x01r' || $2::int)) ||
        to_tsvector('simple', ${plainWords(`left(string_agg(m.text, E'\\n' ORDER BY m.event_id), ${MAX_CHARACTERS})`)})
      FROM jsonb_to_recordset($3::jsonb) AS m(event_id uuid, index int, type text, text text) GROUP BY m.index ORDER BY m.index
      ON CONFLICT (rollout_seq, index) DO UPDATE SET words = rollout_search.words || excluded.words`,
    values: [seq, run_seq, JSON.stringify(messages)],
  });
}

/** Whether it is still there; until the transaction ends nobody erases it. */
export async function holdRollout(client: Pick<pg.Pool, 'query'>, seq: string): Promise<boolean> {
  const { rowCount } = await client.query('SELECT FROM rollout_heads WHERE seq = $1 FOR SHARE', [seq]);
  return rowCount === 1;
}

/** Of a rollout whose words are lost. */
export async function markSearched(pool: pg.Pool, seq: string): Promise<void> {
  await pool.query('UPDATE rollout_heads SET unsearched = false WHERE seq = $1', [seq]);
}
