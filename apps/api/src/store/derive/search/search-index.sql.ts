import type pg from 'pg';
import { MARK_BLOCKS_OF_GONE } from '../../search-marks.sql.ts';
import type { Lane } from '../derive.sql.ts';
import type { RunRange } from '../run-rounds.ts';
import { markFullBlocks } from './search-blocks.sql.ts';

/** What a message costs besides its text. */
const MESSAGE_BYTES = 200;
/** Searchable length of a message, characters. */
const MAX_CHARACTERS = 65_536;

/**
 * Replaces punctuation in a text by spaces: PostgreSQL's parser would keep hosts, paths and signed numbers whole, so that `usr` would not
 * be found in `/usr/bin`. An SQL expression.
 */
export const plainWords = (text: string) => `translate(${text}, $p$!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~$p$, repeat(' ', 32))`;

/**
 * Words for the run and type of a message, so that the index of blocks answers "in this run, by the assistant". Uploaded text cannot contain them,
 * because PostgreSQL's parser drops control characters.
 */
export const runWord = (runSeq: number | string) => `\u0001r${runSeq}`;
export const typeWord = (type: string) => `\u0001t${type}`;

/**
 * A condition on `s`: a message with these marks and words, both SQL of a `tsquery`. A text without words, such as punctuation only, finds
 * nothing; `&&` alone would ignore it and find every marked message.
 */
export const foundBy = (marks: string, words: string) => `numnode(${words}) > 0 AND s.words @@ (${marks} && ${words})`;

/** A rollout that was sealed before it was searchable, because its start event arrived later. Its words are in no row. */
const LATE = `h.sealed_at IS NOT NULL AND NOT EXISTS (SELECT FROM rollout_search s WHERE s.rollout_seq = h.seq)`;

/**
 * Marks a message of which a part is not in the index: beyond `MAX_CHARACTERS`, or in a word above 2 046 bytes, which PostgreSQL drops. Words
 * of 250 characters have it too.
 */
export const PARTIAL_WORD = '\u0001p';
const isPartial = (text: string) =>
  `length(${text}) > ${MAX_CHARACTERS} OR (length(${text}) >= 250 AND ${plainWords(text)} ~ '[^[:space:]]{250}')`;

/** Words of a message, an SQL expression over the aggregated rows `m`; `run` is SQL, too. */
const wordsOf = (run: string, text: string) =>
  `array_to_tsvector(array_agg(DISTINCT E'\\x01t' || m.type) || (E'\\x01r' || ${run}) ||
      CASE WHEN sum(length(${text})) > ${MAX_CHARACTERS} OR bool_or(${isPartial(text)}) THEN ARRAY[E'\\x01p'] ELSE '{}' END) ||
    to_tsvector('simple', ${plainWords(`left(string_agg(${text}, E'\\n' ORDER BY m.event_id), ${MAX_CHARACTERS})`)})`;

/**
 * Writes the rows of `text` (seq, run_seq, sealed, block, index, words), each with a block, and the words of these blocks. A message that has a block keeps it.
 * New messages of a run fill its newest block: each takes one of 256 units per 256 words. Words of a sealed transcript stay beside those of later events.
 * Plan: rollout_search_runs_pkey, conflict arbiter rollout_search_pkey.
 */
const WRITE = `
rollout AS MATERIALIZED (SELECT DISTINCT seq, sealed FROM text),
unit AS MATERIALIZED (
  SELECT *, sum(weight) OVER (PARTITION BY run_seq ORDER BY seq, index) AS upto, sum(weight) OVER (PARTITION BY run_seq) AS added
  FROM (SELECT *, CASE WHEN block IS NULL THEN 1 + length(words) / 256 ELSE 0 END AS weight FROM text) t
), counter AS (
  INSERT INTO rollout_search_runs AS c (run_seq, units) SELECT run_seq, added FROM unit WHERE added > 0 GROUP BY run_seq, added ORDER BY run_seq
  ON CONFLICT (run_seq) DO UPDATE SET units = c.units + excluded.units RETURNING run_seq, units
), word AS (
  INSERT INTO rollout_search AS s (rollout_seq, block, index, words)
  SELECT u.seq, COALESCE(u.block, u.run_seq::bigint << 32 | (c.units - u.added + u.upto - 1) / 256), u.index, u.words
  FROM unit u LEFT JOIN counter c USING (run_seq) ORDER BY u.seq, u.index
  ON CONFLICT (rollout_seq, index) DO UPDATE SET words = CASE WHEN (SELECT sealed FROM rollout WHERE seq = s.rollout_seq) THEN s.words || excluded.words ELSE excluded.words END
    WHERE s.words <> excluded.words
      AND NOT ((SELECT sealed FROM rollout WHERE seq = s.rollout_seq) AND tsvector_to_array(excluded.words) <@ tsvector_to_array(s.words))
  RETURNING s.block, s.words
), filled AS (
  INSERT INTO rollout_search_blocks (block, words)
  SELECT w.block, array_agg(DISTINCT one.word) FROM word w, unnest(tsvector_to_array(w.words)) AS one(word) GROUP BY w.block ORDER BY w.block RETURNING block
)`;

/**
 * Indexes messages of some rollouts from a position ($2, $3) on, at most $4 bytes of text or one index. Two clients may have given one index to two messages, of which one
 * comes later: words of an index are written again where it has several messages, and added to those of a transcript. Plan: per rollout an Index Scan
 * of its partition's primary key and of rollout_search_pkey.
 */
const INDEX = `
WITH head AS MATERIALIZED (
  SELECT seq, day, run_seq, sealed_at IS NOT NULL AS sealed FROM rollout_heads WHERE seq = ANY($1::bigint[]) AND seq >= $2
), message AS MATERIALIZED (
  SELECT h.seq, h.run_seq, h.sealed, m.index, m.event_id, m.type, m.name, m.summary, m.content, m.bytes, count(*) OVER (PARTITION BY h.seq, m.index) AS several, s.block
  FROM head h JOIN rollout_messages m ON m.day = h.day AND m.rollout_seq = h.seq LEFT JOIN rollout_search s ON s.rollout_seq = h.seq AND s.index = m.index
  WHERE (h.seq, m.index) >= ($2::bigint, $3::int)
), due AS MATERIALIZED (
  SELECT *, sum(bytes + ${MESSAGE_BYTES}) OVER place <= $4 OR dense_rank() OVER place = 1 AS now
  FROM message WHERE sealed OR several > 1 OR block IS NULL WINDOW place AS (ORDER BY seq, index)
), text AS MATERIALIZED (
  SELECT m.seq, m.run_seq, m.sealed, m.block, m.index, ${wordsOf('m.run_seq', `concat_ws(' ', m.name, m.summary, m.content)`)} AS words
  FROM due m WHERE m.now GROUP BY m.seq, m.run_seq, m.sealed, m.block, m.index
), ${WRITE}, rest AS (
  SELECT seq, index FROM due WHERE NOT now ORDER BY seq, index LIMIT 1
)
SELECT ARRAY(SELECT block::text FROM filled) AS blocks, (SELECT seq::text FROM rest) AS seq, (SELECT index FROM rest) AS index`;

/**
 * A separate statement, because PostgreSQL 18 (18.4 still) crashes when a row to lock changed meanwhile and the same statement prunes
 * partitions at run time, as the one above does. After a crash between the two the same words are indexed again, which changes nothing.
 */
const DONE = `
UPDATE rollout_heads SET unsearched = false WHERE seq IN (
  SELECT h.seq FROM rollout_heads h JOIN unnest($1::bigint[], $2::int[]) AS head(seq, revision) ON h.seq = head.seq AND h.revision = head.revision
  ORDER BY h.seq FOR UPDATE OF h SKIP LOCKED)`;

/**
 * Deletes words of rollouts that were erased while they were indexed, because the erasure did not see these rows. Waits for a running
 * erasure; a later one sees the rows. A separate statement, because one that holds word rows could deadlock with an erasure. Plan: primary
 * keys.
 */
const ERASED = `
WITH held AS MATERIALIZED (SELECT seq FROM rollout_heads WHERE seq = ANY($1::bigint[]) ORDER BY id FOR KEY SHARE),
gone AS (DELETE FROM rollout_search WHERE rollout_seq = ANY(ARRAY(SELECT unnest($1::bigint[]) EXCEPT SELECT seq FROM held)) RETURNING block)
${MARK_BLOCKS_OF_GONE}`;

export interface UnsearchedHead {
  seq: string;
  run_seq: number;
  revision: number;
}

/** Position at which indexing of a batch continues. */
export interface IndexPosition {
  seq: string;
  index: number;
}

/** The newest run with rollouts to index; 0 = none. Plan: one probe of rollout_heads_unsearched_idx (partial), backwards. */
export async function selectNewestUnsearched(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ run_seq: number }>({
    name: 'rollouts-search-newest',
    text: 'SELECT run_seq FROM rollout_heads WHERE unsearched AND run_seq IS NOT NULL ORDER BY run_seq DESC LIMIT 1',
    values: [],
  });
  return rows[0]?.run_seq ?? 0;
}

/** Runs after `after` (SQL) with rollouts to index, ascending. Plan: one probe of rollout_heads_unsearched_idx (partial) a run. */
const runsAfter = (after: string) => `RECURSIVE run(run_seq) AS (
  (SELECT run_seq FROM rollout_heads WHERE unsearched AND run_seq > ${after} ORDER BY run_seq LIMIT 1)
  UNION ALL
  SELECT next.run_seq FROM run CROSS JOIN LATERAL (SELECT h.run_seq FROM rollout_heads h WHERE h.unsearched AND h.run_seq > run.run_seq ORDER BY h.run_seq LIMIT 1) next
)`;
/** With more runs than this, each lane is taken to have work. */
const MAX_LANE_RUNS = 1_000;

/** Lanes with work, of `lanes`, except rollouts of `without`. Plan: as above, bounded. */
export async function selectDueSearchLanes(pool: pg.Pool, lanes: number, without: readonly string[]): Promise<number[]> {
  const { rows } = await pool.query<{ lane: number }>({
    name: 'rollouts-due-search-lanes',
    text: `WITH ${runsAfter('0')}, first AS MATERIALIZED (
        SELECT run_seq FROM (SELECT run_seq FROM run LIMIT ${MAX_LANE_RUNS}) r
        WHERE EXISTS (SELECT FROM rollout_heads h WHERE h.unsearched AND h.run_seq = r.run_seq AND NOT h.seq = ANY($2::bigint[])))
      SELECT lane FROM generate_series(0, $1::int - 1) lane
      WHERE (SELECT count(*) FROM first) = ${MAX_LANE_RUNS} OR lane IN (SELECT run_seq % $1::int FROM first)`,
    values: [lanes, without],
  });
  return rows.map(({ lane }) => lane);
}

/**
 * The next rollouts to index of the runs of a lane after the run `after` and up to `until`, except `without`: at most `bytes` of them, or one, in
 * the order of their sequence. Plan: per run of the lane an Index Scan using rollout_heads_unsearched_idx, bounded.
 */
export async function selectUnsearched(
  pool: pg.Pool,
  limit: number,
  bytes: number,
  lane: Lane & RunRange,
  without: readonly string[],
): Promise<UnsearchedHead[]> {
  const { rows } = await pool.query<UnsearchedHead>({
    name: 'rollouts-search-heads',
    text: `WITH ${runsAfter('$6')}
      SELECT seq::text, run_seq, revision FROM (
        SELECT seq, run_seq, revision, sum(bytes + ${MESSAGE_BYTES}::bigint * messages) OVER place AS upto, row_number() OVER place AS n
        FROM (
          SELECT h.* FROM run CROSS JOIN LATERAL (
            SELECT h.seq, h.run_seq, h.revision, h.bytes, h.messages FROM rollout_heads h
            WHERE h.unsearched AND h.run_seq = run.run_seq AND NOT h.seq = ANY($5::bigint[]) AND NOT (${LATE}) ORDER BY h.seq LIMIT $1) h
          WHERE run.run_seq <= $7 AND run.run_seq % $4 = $3 LIMIT $1) h WINDOW place AS (ORDER BY run_seq, seq)) h
      WHERE upto <= $2 OR n = 1 ORDER BY h.seq`,
    values: [limit, bytes, lane.number, lane.of, without, lane.after, lane.until],
  });
  return rows;
}

/** Indexes at most `bytes` of text from a position. Returns the next position, or null when these rollouts are done. */
export async function indexMessages(
  pool: pg.Pool,
  heads: readonly UnsearchedHead[],
  from: IndexPosition | null,
  bytes: number,
): Promise<IndexPosition | null> {
  const { rows } = await pool.query<{ blocks: string[]; seq: string | null; index: number | null }>({
    name: 'rollouts-search-index',
    text: INDEX,
    values: [heads.map(({ seq }) => seq), from?.seq ?? '0', from?.index ?? 0, bytes],
  });
  const { blocks, seq, index } = rows[0]!;
  await markFullBlocks(pool, blocks);
  return seq === null ? null : { seq, index: index! };
}

/** These rollouts are searchable, unless messages came after `revision`. */
export async function finishIndexing(pool: pg.Pool, heads: readonly UnsearchedHead[]): Promise<void> {
  const seqs = heads.map(({ seq }) => seq);
  await pool.query({ name: 'rollouts-search-erased', text: ERASED, values: [seqs] });
  await pool.query({ name: 'rollouts-search-done', text: DONE, values: [seqs, heads.map(({ revision }) => revision)] });
}

export interface LateRollout {
  seq: string;
  run_seq: number;
}

/** Except `without`. Plan: rollout_heads_late_idx (partial), whose rows are few. */
export async function selectLate(pool: pg.Pool, limit: number, without: readonly string[]): Promise<LateRollout[]> {
  const { rows } = await pool.query<LateRollout>({
    name: 'rollouts-search-late',
    text: `SELECT h.seq::text, h.run_seq FROM rollout_heads h WHERE h.unsearched AND h.run_seq IS NOT NULL AND NOT h.seq = ANY($2::bigint[]) AND ${LATE} ORDER BY h.seq LIMIT $1`,
    values: [limit, without],
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

/** Adds the words of the given messages, as `indexMessages` does for rows. Plan: Insert with conflict arbiter rollout_search_pkey. */
export async function insertWords(
  client: Pick<pg.Pool, 'query'>,
  { seq, run_seq }: LateRollout,
  messages: readonly SearchedMessage[],
): Promise<string[]> {
  const { rows } = await client.query<{ block: string }>({
    name: 'rollouts-search-words',
    text: `WITH text AS MATERIALIZED (
        SELECT m.*, s.block FROM (
          SELECT $1::bigint AS seq, $2::int AS run_seq, true AS sealed, m.index, ${wordsOf('$2::int', 'm.text')} AS words
          FROM jsonb_to_recordset($3::jsonb) AS m(event_id uuid, index int, type text, text text) GROUP BY m.index) m
        LEFT JOIN rollout_search s ON s.rollout_seq = m.seq AND s.index = m.index
      ), ${WRITE} SELECT block::text FROM filled`,
    values: [seq, run_seq, JSON.stringify(messages)],
  });
  return rows.map(({ block }) => block);
}

/** Whether the rollout exists. It cannot be erased until the transaction ends. */
export async function holdRollout(client: Pick<pg.Pool, 'query'>, seq: string): Promise<boolean> {
  const { rowCount } = await client.query('SELECT FROM rollout_heads WHERE seq = $1 FOR SHARE', [seq]);
  return rowCount === 1;
}

/** Marks a rollout as indexed although its words are lost. */
export async function markSearched(pool: pg.Pool, seq: string): Promise<void> {
  await pool.query('UPDATE rollout_heads SET unsearched = false WHERE seq = $1', [seq]);
}
