import { Injectable } from '@nestjs/common';
import type { JsonObject } from '@palestra/protocol';
import type { MessageSkeleton } from '@palestra/rollouts';
import { Database } from '../platform/database.ts';

export interface StoredMessageRow {
  event_id: string;
  index: number;
  type: string;
  name: string | null;
  call_id: string | null;
  content: string | null;
  content_reference: string | null;
  summary: string | null;
  reward: number | null;
  is_finished: boolean;
  flags: number;
  bytes: number;
  blob_key: string | null;
  metadata: JsonObject | null;
  extra: JsonObject | null;
  /** Milliseconds since the epoch. */
  sent_at: string;
}

/** What is needed of a head to find its messages. */
export interface TranscriptPlace {
  seq: string;
  day: string;
  sealed: boolean;
}

/** Messages by index; equal indexes by event id, so that the order never changes between two reads. Plan: the partition's primary key. */
const MESSAGES = `
SELECT event_id, index, type, name, call_id, content, content_reference, summary, reward, is_finished, flags, bytes, blob_key, metadata, extra, sent_at
FROM rollout_messages WHERE day = $1 AND rollout_seq = $2 AND index >= $3 ORDER BY index, event_id LIMIT $4`;

/** Reads of messages, wherever they are by now. */
@Injectable()
export class TranscriptReader {
  constructor(private readonly database: Database) {}

  async messages(place: TranscriptPlace, page: { from?: number; limit?: number } = {}): Promise<StoredMessageRow[]> {
    const { rows } = await this.database.pool.query<StoredMessageRow>(MESSAGES, [place.day, place.seq, page.from ?? 0, page.limit ?? null]);
    return rows;
  }

  /** What the normaliser needs of sealed rollouts, sealed and late messages together, by `seq`. */
  async skeletons(places: readonly TranscriptPlace[]): Promise<Map<string, MessageSkeleton[]>> {
    const found = new Map<string, MessageSkeleton[]>();
    for (const place of places) {
      const rows = await this.messages(place);
      found.set(place.seq, rows.map(skeletonOf));
    }
    return found;
  }
}

function skeletonOf(row: StoredMessageRow): MessageSkeleton {
  return {
    index: row.index,
    type: row.type as MessageSkeleton['type'],
    name: row.name,
    callId: row.call_id,
    reward: row.reward,
    isFinished: row.is_finished,
    flags: row.flags,
    bytes: row.bytes,
    sentAt: Number(row.sent_at),
  };
}
