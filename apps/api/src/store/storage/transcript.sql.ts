import type pg from 'pg';
import { type ErrorMessage, MESSAGE_FLAGS, type MessageSkeleton, READ_PART } from '@palestra/rollouts';
import { chunksOf, type TranscriptChunk } from '@palestra/rollouts/transcript';
import type { StoredMessageRow, TranscriptLocation } from './transcript-reader.service.ts';

/** Location of a rollout's sealed messages. A rollout that is sealed again, or whose pack is merged, gets another object. */
export interface TranscriptPointer {
  blob_key: string;
  /** Their `at` is the position in the object. */
  chunks: TranscriptChunk[];
  /** As in its head. Distinguishes the seals of a rollout. */
  sealed_at: string;
}

interface PointerRow {
  seq: string;
  blob_key: string;
  at: string;
  chunks: string;
  sealed_at: string;
}

/** By `seq`, without rollouts that were never sealed. Plan: rollout_transcripts_pkey, transcript_packs_pkey. */
export async function selectPointers(pool: Pick<pg.Pool, 'query'>, seqs: readonly string[]): Promise<Map<string, TranscriptPointer>> {
  const { rows } = await pool.query<PointerRow>({
    name: 'transcript-pointers',
    text: `SELECT t.rollout_seq::text AS seq, p.blob_key, t.at, t.chunks, t.sealed_at::text
      FROM rollout_transcripts t JOIN transcript_packs p ON p.id = t.pack WHERE t.rollout_seq = ANY($1::bigint[])`,
    values: [seqs],
  });
  return new Map(
    rows.map(({ seq, blob_key, at, chunks, sealed_at }) => [seq, { blob_key, chunks: chunksOf(chunks, Number(at)), sealed_at }]),
  );
}

/** Messages by index, then by event id, so that the order is the same in every read. Plan: the partition's primary key. */
export async function selectLiveMessages(
  pool: pg.Pool,
  location: TranscriptLocation,
  from: number,
  limit: number | null,
): Promise<StoredMessageRow[]> {
  const { rows } = await pool.query<StoredMessageRow>({
    name: 'transcript-live-messages',
    text: `SELECT event_id, index, type, name, call_id, content, content_reference, summary, reward, is_finished, flags, bytes, blob_key, metadata, extra, sent_at
      FROM rollout_messages WHERE day = $1 AND rollout_seq = $2 AND index >= $3 ORDER BY index, event_id LIMIT $4`,
    values: [location.day, location.seq, from, limit],
  });
  return rows;
}

/** Those of several rollouts, by `seq`; rollouts without any are absent. Plan: per rollout an Index Scan of its partition's primary key. */
export async function selectLiveMessagesOfMany(
  pool: pg.Pool,
  locations: readonly TranscriptLocation[],
): Promise<Map<string, StoredMessageRow[]>> {
  const { rows } = await pool.query<StoredMessageRow & { seq: string }>({
    name: 'transcript-live-messages-of-many',
    text: `SELECT h.seq::text, m.* FROM unnest($1::bigint[], $2::date[]) AS h(seq, day) CROSS JOIN LATERAL (
        SELECT event_id, index, type, name, call_id, content, content_reference, summary, reward, is_finished, flags, bytes, blob_key, metadata, extra, sent_at
        FROM rollout_messages WHERE day = h.day AND rollout_seq = h.seq ORDER BY index, event_id OFFSET 0) m`,
    values: [locations.map(({ seq }) => seq), locations.map(({ day }) => day)],
  });
  const found = new Map<string, StoredMessageRow[]>();
  for (const { seq, ...row } of rows) {
    const known = found.get(seq);
    if (known) known.push(row);
    else found.set(seq, [row]);
  }
  return found;
}

export type KeyedSkeleton = MessageSkeleton & { eventId: string };

type SkeletonTuple = [string, number, string, string | null, string | null, number | null, boolean, number, number, number];

/**
 * One JSON array per rollout, because parsing one text is several times as fast as parsing rows. Plan: per rollout an Index Scan of its
 * partition's primary key.
 */
export async function selectLiveSkeletons(pool: pg.Pool, locations: readonly TranscriptLocation[]): Promise<Map<string, KeyedSkeleton[]>> {
  const { rows } = await pool.query<{ seq: string; messages: SkeletonTuple[] | null }>({
    name: 'transcript-live-skeletons',
    text: `SELECT h.seq::text, (
        SELECT json_agg(json_build_array(m.event_id, m.index, m.type, m.name, m.call_id, m.reward, m.is_finished, m.flags, m.bytes, m.sent_at)
          ORDER BY m.index, m.event_id)
        FROM rollout_messages m WHERE m.day = h.day AND m.rollout_seq = h.seq) AS messages
      FROM unnest($1::bigint[], $2::date[]) AS h(seq, day)`,
    values: [locations.map(({ seq }) => seq), locations.map(({ day }) => day)],
  });
  return new Map(rows.map(({ seq, messages }) => [seq, (messages ?? []).map(skeletonOf)]));
}

function skeletonOf([eventId, index, type, name, callId, reward, isFinished, flags, bytes, sentAt]: SkeletonTuple): KeyedSkeleton {
  return { eventId, index, type: type as MessageSkeleton['type'], name, callId, reward, isFinished, flags, bytes, sentAt };
}

/** A message that is an error, by its index. */
export interface ErrorLocation extends TranscriptLocation {
  index: number;
}

/** Messages that say what failed. */
export const ERROR_FLAGS = MESSAGE_FLAGS.error | MESSAGE_FLAGS.parseError;

/** Content of these messages, of unsealed rollouts, by `seq`. Plan: as `selectLiveSkeletons`. */
export async function selectLiveErrors(pool: pg.Pool, locations: readonly ErrorLocation[]): Promise<Map<string, ErrorMessage>> {
  const { rows } = await pool.query<ErrorMessage & { seq: string }>({
    name: 'transcript-live-errors',
    text: `SELECT h.seq::text, m.content, m.metadata FROM unnest($1::bigint[], $2::date[], $3::int[]) AS h(seq, day, index)
      CROSS JOIN LATERAL (
        SELECT CASE WHEN char_length(content) > $4 THEN left(content, $5) || E'\\n' || right(content, $4 - $5) ELSE content END AS content, metadata
        FROM rollout_messages WHERE day = h.day AND rollout_seq = h.seq AND index = h.index AND flags & $6 <> 0 ORDER BY event_id LIMIT 1) m`,
    values: [
      locations.map(({ seq }) => seq),
      locations.map(({ day }) => day),
      locations.map(({ index }) => index),
      READ_PART.characters,
      READ_PART.head,
      ERROR_FLAGS,
    ],
  });
  return new Map(rows.map(({ seq, content, metadata }) => [seq, { content, metadata }]));
}

/** First system and first user message of unsealed rollouts. Plan: as above. */
export async function selectLivePrompts(pool: pg.Pool, locations: readonly TranscriptLocation[]): Promise<Map<string, string | null>> {
  const { rows } = await pool.query<{ seq: string; prompt: string | null }>(
    `SELECT h.seq::text, (
       SELECT string_agg(content, E'\\n' ORDER BY index) FROM (
         SELECT DISTINCT ON (m.type) m.type, m.index, m.content FROM rollout_messages m
         WHERE m.day = h.day AND m.rollout_seq = h.seq AND m.type IN ('system_message', 'user_message') ORDER BY m.type, m.index, m.event_id) first) AS prompt
     FROM unnest($1::bigint[], $2::date[]) AS h(seq, day)`,
    [locations.map(({ seq }) => seq), locations.map(({ day }) => day)],
  );
  return new Map(rows.map(({ seq, prompt }) => [seq, prompt]));
}
