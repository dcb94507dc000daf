import type pg from 'pg';
import type { MessageSkeleton } from '@palestra/rollouts';
import type { TranscriptChunk } from '@palestra/rollouts/transcript';
import type { StoredMessageRow, TranscriptLocation } from './transcript-reader.service.ts';

/** Where the sealed messages of a rollout are. */
export interface TranscriptPointer {
  blob_key: string;
  chunks: TranscriptChunk[];
  /** As its head has it: tells one seal of a rollout from the next. */
  sealed_at: string;
}

/** By `seq`; rollouts that were never sealed are left out. Plan: rollout_transcripts_pkey. */
export async function selectPointers(pool: Pick<pg.Pool, 'query'>, seqs: readonly string[]): Promise<Map<string, TranscriptPointer>> {
  const { rows } = await pool.query<TranscriptPointer & { seq: string }>({
    name: 'transcript-pointers',
    text: 'SELECT rollout_seq::text AS seq, blob_key, chunks, sealed_at::text FROM rollout_transcripts WHERE rollout_seq = ANY($1::bigint[])',
    values: [seqs],
  });
  return new Map(rows.map(({ seq, ...pointer }) => [seq, pointer]));
}

/** Messages by index; equal indexes by event id, so that the order never changes between two reads. Plan: the partition's primary key. */
export async function selectLiveMessages(
  pool: pg.Pool,
  place: TranscriptLocation,
  from: number,
  limit: number | null,
): Promise<StoredMessageRow[]> {
  const { rows } = await pool.query<StoredMessageRow>({
    name: 'transcript-live-messages',
    text: `SELECT event_id, index, type, name, call_id, content, content_reference, summary, reward, is_finished, flags, bytes, blob_key, metadata, extra, sent_at
      FROM rollout_messages WHERE day = $1 AND rollout_seq = $2 AND index >= $3 ORDER BY index, event_id LIMIT $4`,
    values: [place.day, place.seq, from, limit],
  });
  return rows;
}

export type KeyedSkeleton = MessageSkeleton & { eventId: string };

type SkeletonTuple = [string, number, string, string | null, string | null, number | null, boolean, number, number, number];

/**
 * One JSON array a rollout: parsing one text is several times as fast as rows. Plan: per rollout an Index Scan of its partition's
 * primary key.
 */
export async function selectLiveSkeletons(pool: pg.Pool, places: readonly TranscriptLocation[]): Promise<Map<string, KeyedSkeleton[]>> {
  const { rows } = await pool.query<{ seq: string; messages: SkeletonTuple[] | null }>({
    name: 'transcript-live-skeletons',
    text: `SELECT h.seq::text, (
        SELECT json_agg(json_build_array(m.event_id, m.index, m.type, m.name, m.call_id, m.reward, m.is_finished, m.flags, m.bytes, m.sent_at)
          ORDER BY m.index, m.event_id)
        FROM rollout_messages m WHERE m.day = h.day AND m.rollout_seq = h.seq) AS messages
      FROM unnest($1::bigint[], $2::date[]) AS h(seq, day)`,
    values: [places.map(({ seq }) => seq), places.map(({ day }) => day)],
  });
  return new Map(rows.map(({ seq, messages }) => [seq, (messages ?? []).map(skeletonOf)]));
}

function skeletonOf([eventId, index, type, name, callId, reward, isFinished, flags, bytes, sentAt]: SkeletonTuple): KeyedSkeleton {
  return { eventId, index, type: type as MessageSkeleton['type'], name, callId, reward, isFinished, flags, bytes, sentAt };
}

/** First system and first user message of rollouts that are not sealed. Plan: as above. */
export async function selectLivePrompts(pool: pg.Pool, places: readonly TranscriptLocation[]): Promise<Map<string, string | null>> {
  const { rows } = await pool.query<{ seq: string; prompt: string | null }>(
    `SELECT h.seq::text, (
       SELECT string_agg(content, E'\\n' ORDER BY index) FROM (
         SELECT DISTINCT ON (m.type) m.type, m.index, m.content FROM rollout_messages m
         WHERE m.day = h.day AND m.rollout_seq = h.seq AND m.type IN ('system_message', 'user_message') ORDER BY m.type, m.index, m.event_id) first) AS prompt
     FROM unnest($1::bigint[], $2::date[]) AS h(seq, day)`,
    [places.map(({ seq }) => seq), places.map(({ day }) => day)],
  );
  return new Map(rows.map(({ seq, prompt }) => [seq, prompt]));
}
