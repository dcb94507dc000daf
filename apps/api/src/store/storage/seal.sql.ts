import type pg from 'pg';
import { chunksText, type TranscriptChunk, type TranscriptLine } from '@palestra/rollouts/transcript';
import { inTransaction } from '../../platform/database/transaction.ts';
import { deleteEmptyPacks, markPacksOf } from './pack.sql.ts';

type Queryable = Pick<pg.Pool, 'query'>;

/** A quiet rollout, derived and searchable if possible, with message rows that are in no transcript. */
export interface Sealable {
  seq: string;
  id: string;
  org_id: string;
  run_seq: number | null;
  day: string;
  revision: number;
  messages: number;
  bytes: number;
  /** It has a transcript and grew since. */
  resealed: boolean;
}

/**
 * Rollouts without a start event are in no run, so they are neither derived nor searchable. They are sealed when they are silent, and both
 * happen from the transcript if the start event still arrives.
 */
const SETTLED = `(h.run_seq IS NULL OR NOT h.dirty AND NOT h.unsearched)`;

/**
 * Plan: Index Scan using rollout_heads_unsealed_idx (partial) from `after`, so that a pass meets each rollout once; one probe of
 * rollout_transcripts_pkey a row.
 */
const SEALABLE = `
SELECT h.seq, h.id, h.org_id, h.run_seq, h.day::text, h.revision, h.messages, h.bytes::float8 AS bytes, t.rollout_seq IS NOT NULL AS resealed
FROM rollout_heads h LEFT JOIN rollout_transcripts t ON t.rollout_seq = h.seq
WHERE h.unsealed AND ${SETTLED} AND h.seq > $1
  AND (h.last_at < now() - $2 * interval '1 ms' OR h.finished AND h.run_seq IS NOT NULL AND h.last_at < now() - $3 * interval '1 ms')
ORDER BY h.seq LIMIT $4`;

export interface SealTimes {
  /** Silence after which a rollout without a final message is sealed. */
  silentMs: number;
  /** Silence after which a rollout with a final message is sealed. */
  finishedMs: number;
}

export async function selectSealable(pool: pg.Pool, after: string, times: SealTimes, limit: number): Promise<Sealable[]> {
  const { rows } = await pool.query<Sealable>({
    name: 'seal-candidates',
    text: SEALABLE,
    values: [after, times.silentMs, times.finishedMs, limit],
  });
  return rows;
}

/** The line of a message, written by PostgreSQL, so that numbers in metadata keep every digit. Keys are those of `TranscriptMessage`. */
const lineOf = (
  rolloutId: string,
) => `row_to_json((SELECT line FROM (SELECT ${rolloutId} AS rollout_id, m.event_id, m.index, m.type, m.name, m.call_id, m.content, m.content_reference, m.summary, m.reward,
  m.is_finished, m.flags, m.bytes, m.blob_key, m.metadata, m.extra, m.sent_at) line))::text`;

/** All lines of several small rollouts, one text each. Plan: per rollout an Index Scan of its partition's primary key. */
const TEXTS = `
SELECT h.seq::text, t.* FROM unnest($1::bigint[], $2::date[], $3::uuid[]) AS h(seq, day, id) CROSS JOIN LATERAL (
  SELECT string_agg(${lineOf('h.id')}, E'\\n' ORDER BY m.index, m.event_id) AS text, min(m.index) AS first, max(m.index) AS last,
    array_agg(m.event_id::text ORDER BY m.index, m.event_id) AS "eventIds"
  FROM rollout_messages m WHERE m.day = h.day AND m.rollout_seq = h.seq) t WHERE t.text IS NOT NULL`;

export interface RolloutText {
  seq: string;
  text: string;
  first: number;
  last: number;
  eventIds: string[];
}

export async function selectTexts(
  pool: pg.Pool,
  rollouts: readonly Pick<Sealable, 'seq' | 'day' | 'id'>[],
): Promise<Map<string, RolloutText>> {
  const { rows } = await pool.query<RolloutText>({
    name: 'seal-texts',
    text: TEXTS,
    values: [rollouts.map(({ seq }) => seq), rollouts.map(({ day }) => day), rollouts.map(({ id }) => id)],
  });
  return new Map(rows.map((row) => [row.seq, row]));
}

/** A message without its body. `bytes`: approximate size of its line. */
export interface MessageKey {
  event_id: string;
  index: number;
  bytes: number;
}

/** Keys of the message rows of a rollout in the order of a transcript; `pg_column_size` reads no body. Plan: as above. */
export async function selectKeys(pool: pg.Pool, { seq, day }: Pick<Sealable, 'seq' | 'day'>): Promise<MessageKey[]> {
  const { rows } = await pool.query<MessageKey>({
    name: 'seal-keys',
    text: `SELECT event_id, index, bytes + 4 * COALESCE(pg_column_size(metadata), 0) + 4 * COALESCE(pg_column_size(extra), 0) AS bytes
      FROM rollout_messages WHERE day = $1 AND rollout_seq = $2 ORDER BY index, event_id`,
    values: [day, seq],
  });
  return rows;
}

/** Lines of some message rows of a rollout. Plan: Index Scan of its partition's primary key by event id. */
export async function selectLines(
  pool: pg.Pool,
  { seq, day, id }: Pick<Sealable, 'seq' | 'day' | 'id'>,
  eventIds: readonly string[],
): Promise<TranscriptLine[]> {
  const { rows } = await pool.query<TranscriptLine>({
    name: 'seal-lines',
    text: `SELECT m.event_id, m.index, ${lineOf('$4::uuid')} AS text FROM rollout_messages m
      WHERE m.day = $1 AND m.rollout_seq = $2 AND m.event_id = ANY($3::uuid[]) ORDER BY m.index, m.event_id`,
    values: [day, seq, eventIds, id],
  });
  return rows;
}

/** Counters of a head. `output_chars`: characters that the model wrote. */
export interface MessageCounts {
  calls: number;
  max_index: number;
  body_bytes: number;
  output_chars: number;
}

/**
 * A transcript in a new object, which replaces message rows. `at`: its first byte there. `counts`: counters of a merged transcript, whose
 * head counted repeated messages twice.
 */
export interface SealedTranscript {
  seq: string;
  revision: number;
  at: number;
  chunks: readonly TranscriptChunk[];
  messages: number;
  bytes: number;
  counts: MessageCounts | null;
}

/** An object with the transcripts of rollouts of one run. */
export interface SealedPack {
  blob_key: string;
  org_id: string;
  run_seq: number | null;
  bytes: number;
  transcripts: readonly SealedTranscript[];
}

/**
 * One transaction stores the pointers and deletes the rows, for rollouts that did not change since they were read: their revision is the
 * same after their head is locked, so no ingest happened in between (SKIP LOCKED: the next pass takes a rollout that ingest holds), and no
 * process discarded the object. Packs that lose a transcript, also this one, are marked for `CompactService`.
 *
 * Several statements, because PostgreSQL 18 (18.4 still) crashes when a row to lock changed meanwhile and the same statement prunes
 * partitions at run time, as deleting messages by their head's day does. Plan: primary keys throughout.
 */
const LOCK = `
SELECT h.seq, h.day::text FROM rollout_heads h JOIN unnest($1::bigint[], $2::int[]) AS o(seq, revision) ON o.seq = h.seq AND o.revision = h.revision
WHERE h.unsealed AND ${SETTLED} ORDER BY h.seq FOR UPDATE OF h SKIP LOCKED`;

const POINT = `
WITH kept AS (
  DELETE FROM rollout_garbage WHERE blob_key = $3 AND NOT doomed RETURNING blob_key
), pack AS (
  INSERT INTO transcript_packs (blob_key, org_id, run_seq, bytes, dirty_since)
  SELECT blob_key, $4::uuid, $5::int, $6::bigint, CASE WHEN $7 THEN now() END FROM kept RETURNING id
), transcript AS MATERIALIZED (
  SELECT t.*, pack.id AS pack FROM pack,
    jsonb_to_recordset($1::jsonb) AS t(seq bigint, at bigint, chunks text, messages int, bytes bigint, counts jsonb) WHERE t.seq = ANY($2::bigint[])
), pointer AS (
  INSERT INTO rollout_transcripts AS t (rollout_seq, pack, at, chunks, messages, bytes)
  SELECT o.seq, o.pack, o.at, o.chunks, o.messages, o.bytes FROM transcript o ORDER BY o.seq
  ON CONFLICT (rollout_seq) DO UPDATE SET pack = excluded.pack, at = excluded.at, chunks = excluded.chunks, messages = excluded.messages,
    bytes = excluded.bytes, sealed_at = now()
)
UPDATE rollout_heads h SET sealed_at = now(), unsealed = false,
  messages = CASE WHEN o.counts IS NULL THEN h.messages ELSE o.messages END,
  calls = COALESCE((o.counts->>'calls')::int, h.calls),
  max_index = COALESCE((o.counts->>'max_index')::int, h.max_index),
  bytes = COALESCE((o.counts->>'body_bytes')::bigint, h.bytes),
  output_chars = COALESCE((o.counts->>'output_chars')::bigint, h.output_chars)
FROM transcript o WHERE h.seq = o.seq RETURNING h.seq::text`;

/** Delete on the partitions with run-time pruning by the day. */
const CLEAR = `
DELETE FROM rollout_messages m USING unnest($1::bigint[], $2::date[]) AS h(seq, day) WHERE m.day = h.day AND m.rollout_seq = h.seq`;

/** Returns the `seq` of the rollouts that are sealed now, and doomed keys of packs that lost their last transcript. */
export function commitSeals(pool: pg.Pool, pack: SealedPack): Promise<{ sealed: string[]; emptied: string[] }> {
  return inTransaction(pool, async (client) => {
    const wanted = [pack.transcripts.map(({ seq }) => seq), pack.transcripts.map(({ revision }) => revision)];
    const { rows: heads } = await client.query<{ seq: string; day: string }>({ name: 'seal-lock', text: LOCK, values: wanted });
    if (heads.length === 0) return { sealed: [], emptied: [] };
    const seqs = heads.map(({ seq }) => seq);
    const old = await markPacksOf(client, seqs);
    const { rows } = await client.query<{ seq: string }>({
      name: 'seal-point',
      text: POINT,
      values: [
        JSON.stringify(pack.transcripts.map((transcript) => ({ ...transcript, chunks: chunksText(transcript.chunks) }))),
        seqs,
        pack.blob_key,
        pack.org_id,
        pack.run_seq,
        pack.bytes,
        heads.length < pack.transcripts.length,
      ],
    });
    if (rows.length > 0) await client.query({ name: 'seal-clear', text: CLEAR, values: [seqs, heads.map(({ day }) => day)] });
    return { sealed: rows.map(({ seq }) => seq), emptied: await deleteEmptyPacks(client, old) };
  });
}

/** Marks rollouts without message rows as sealed. Plan: primary keys. */
export async function markSealed(pool: Queryable, rollouts: readonly Pick<Sealable, 'seq' | 'revision'>[]): Promise<number> {
  const { rowCount } = await pool.query(
    `UPDATE rollout_heads SET unsealed = false WHERE seq IN (
       SELECT h.seq FROM rollout_heads h JOIN unnest($1::bigint[], $2::int[]) AS r(seq, revision) ON r.seq = h.seq AND r.revision = h.revision
       ORDER BY h.seq FOR UPDATE OF h SKIP LOCKED)`,
    [rollouts.map(({ seq }) => seq), rollouts.map(({ revision }) => revision)],
  );
  return rowCount ?? 0;
}
