import { Injectable } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import type { MessageSkeleton } from '@palestra/rollouts';
import { compareMessages, type TranscriptMessage } from '@palestra/rollouts/transcript';
import { Database } from '../../platform/database/database.ts';
import { messageOf, TranscriptObjects } from './transcript-objects.service.ts';
import {
  type KeyedSkeleton,
  selectLiveMessages,
  selectLivePrompts,
  selectLiveSkeletons,
  selectPointers,
  type TranscriptPointer,
} from './transcript.sql.ts';

/** `sent_at`: milliseconds since the epoch. */
export type StoredMessageRow = Omit<TranscriptMessage, 'sent_at'> & { sent_at: string };

/** What is needed of a head to find its messages. `sealed` is a hint that saves a query: a rollout may be sealed at any moment. */
export interface TranscriptLocation {
  seq: string;
  day: string;
  sealed: boolean;
}

/** A rollout is sealed or erased at most now and then; one that changes at each look is a defect. */
const MAX_LOOKS = 5;

/**
 * Reads of messages, wherever they are by now: rows, a sealed transcript, or both after late events (of equal event ids the sealed
 * one stands). A rollout that is sealed during a read is read again: the pointer is the same before and after, or it does not count.
 */
@Injectable()
export class TranscriptReader {
  constructor(
    private readonly database: Database,
    private readonly objects: TranscriptObjects,
  ) {}

  /** Messages by index, equal ones by event id; all of them without a `limit`. */
  messages(place: TranscriptLocation, { from = 0, limit }: { from?: number; limit?: number } = {}): Promise<StoredMessageRow[]> {
    return this.#steadily(place, async (pointer) => {
      if (pointer === null) return selectLiveMessages(this.database.pool, place, from, limit ?? null);
      const [live, sealed] = await Promise.all([
        selectLiveMessages(this.database.pool, place, from, null),
        this.objects.page(pointer, from, limit ?? Infinity),
      ]);
      const rows = sealed.map(rowOf);
      if (live.length === 0) return rows;
      const doubled = await this.objects.sealedOf(pointer, new Set(live.map((row) => row.event_id)));
      const late = live.filter((row) => !doubled.has(row.event_id));
      return [...rows, ...late].toSorted(compareMessages).slice(0, limit);
    });
  }

  /** What the normaliser needs of rollouts, sealed or not, by `seq`. */
  async skeletons(places: readonly TranscriptLocation[]): Promise<Map<string, MessageSkeleton[]>> {
    const { pool } = this.database;
    const live = await selectLiveSkeletons(pool, places);
    // In this order: a rollout that is sealed in between is found both ways.
    const pointers = await selectPointers(
      pool,
      places.map(({ seq }) => seq),
    );
    const found = new Map<string, MessageSkeleton[]>();
    for (const place of places) {
      const rows = live.get(place.seq) ?? [];
      found.set(place.seq, pointers.has(place.seq) ? await this.#mergedSkeletons(place) : rows);
    }
    return found;
  }

  /** First system and first user message of each rollout, joined by a line break; null without any. */
  async prompts(places: readonly TranscriptLocation[]): Promise<Map<string, string | null>> {
    const { pool } = this.database;
    const found = await selectLivePrompts(pool, places);
    const pointers = await selectPointers(
      pool,
      places.map(({ seq }) => seq),
    );
    for (const place of places) {
      if (pointers.has(place.seq)) found.set(place.seq, await this.#promptOf(place));
    }
    return found;
  }

  #mergedSkeletons(place: TranscriptLocation): Promise<MessageSkeleton[]> {
    return this.#steadily({ ...place, sealed: true }, async (pointer) => {
      const live = (await selectLiveSkeletons(this.database.pool, [place])).get(place.seq) ?? [];
      const sealed: KeyedSkeleton[] = [];
      if (pointer !== null) for await (const line of this.objects.lines(pointer)) sealed.push(skeletonOf(messageOf(line)));
      const ids = new Set(sealed.map(({ eventId }) => eventId));
      const late = live.filter(({ eventId }) => !ids.has(eventId));
      return late.length === 0 ? sealed : [...sealed, ...late].toSorted(compareSkeletons);
    });
  }

  /** Few rollouts begin with more messages than one chunk has before their task is told. */
  async #promptOf(place: TranscriptLocation): Promise<string | null> {
    const first = new Map<string, StoredMessageRow>();
    for (const row of await this.messages({ ...place, sealed: true }, { limit: 200 })) {
      if (['system_message', 'user_message'].includes(row.type) && !first.has(row.type)) first.set(row.type, row);
    }
    const texts = [...first.values()].flatMap(({ content }) => content ?? []);
    return texts.length > 0 ? texts.join('\n') : null;
  }

  async #steadily<T>(place: TranscriptLocation, read: (pointer: TranscriptPointer | null) => Promise<T>): Promise<T> {
    const pointerNow = async () => (await selectPointers(this.database.pool, [place.seq])).get(place.seq) ?? null;
    let pointer = place.sealed ? await pointerNow() : null;
    for (let look = 1; ; look += 1) {
      const outcome = await read(pointer).catch((error: unknown) => {
        // The old object of a rollout that has just been sealed anew goes.
        if (error instanceof BlobError && error.kind === 'not_found' && look < MAX_LOOKS) return { lost: error };
        throw error;
      });
      const after = await pointerNow();
      const same = after?.blob_key === pointer?.blob_key;
      const lost = typeof outcome === 'object' && outcome !== null && 'lost' in outcome ? (outcome.lost as BlobError) : null;
      if (same && lost) throw new Error(`the transcript ${pointer?.blob_key} is not in the object store`, { cause: lost });
      if (same) return outcome as T;
      if (look === MAX_LOOKS) throw new Error(`rollout ${place.seq} was sealed again and again during one read`);
      pointer = after;
    }
  }
}

const rowOf = (message: TranscriptMessage): StoredMessageRow => ({ ...message, sent_at: String(message.sent_at) });

function skeletonOf(message: TranscriptMessage): KeyedSkeleton {
  return {
    eventId: message.event_id,
    index: message.index,
    type: message.type as MessageSkeleton['type'],
    name: message.name,
    callId: message.call_id,
    reward: message.reward,
    isFinished: message.is_finished,
    flags: message.flags,
    bytes: message.bytes,
    sentAt: message.sent_at,
  };
}

const compareSkeletons = (a: KeyedSkeleton, b: KeyedSkeleton) =>
  compareMessages({ index: a.index, event_id: a.eventId }, { index: b.index, event_id: b.eventId });
