import { Injectable } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import { TimeSlice } from '@palestra/kit';
import type { ErrorMessage, MessageSkeleton } from '@palestra/rollouts';
import { compareMessages, type TranscriptMessage } from '@palestra/rollouts/transcript';
import { Database } from '../../platform/database/database.ts';
import { mapLimit } from './map-limit.ts';
import { messageOf, TranscriptObjects } from './transcript-objects.service.ts';
import {
  ERROR_FLAGS,
  type ErrorLocation,
  type KeyedSkeleton,
  selectLiveErrors,
  selectLiveMessages,
  selectLiveMessagesOfMany,
  selectLivePrompts,
  selectLiveSkeletons,
  selectPointers,
  type TranscriptPointer,
} from './transcript.sql.ts';

/** `sent_at`: milliseconds since the epoch. */
export type StoredMessageRow = Omit<TranscriptMessage, 'sent_at'> & { sent_at: string };

/** Location of a rollout's messages. `sealed` is a hint that saves a query: a rollout may be sealed at any time. */
export interface TranscriptLocation {
  seq: string;
  day: string;
  sealed: boolean;
}

/** Sealed rollouts that are read side by side. */
const SEALED_READS = 8;
/** Messages that share an index. */
const MAX_REPEATS = 4;

/** A rollout is seldom sealed or erased. One that changes during each attempt is a defect. */
const MAX_ATTEMPTS = 5;

/**
 * Reads messages from rows, a sealed transcript, or both after late events (of equal event ids the sealed one is valid). If a rollout is
 * sealed during a read, the read is repeated until the pointer is the same before and after.
 */
@Injectable()
export class TranscriptReader {
  constructor(
    private readonly database: Database,
    private readonly objects: TranscriptObjects,
  ) {}

  /** Messages by index, then by event id. All without a `limit`. */
  messages(location: TranscriptLocation, { from = 0, limit }: { from?: number; limit?: number } = {}): Promise<StoredMessageRow[]> {
    return this.#readConsistently(location, async (pointer) => {
      if (pointer === null) return selectLiveMessages(this.database.pool, location, from, limit ?? null);
      const [live, sealed] = await Promise.all([
        selectLiveMessages(this.database.pool, location, from, null),
        this.objects.page(pointer, from, limit ?? Infinity),
      ]);
      const rows = sealed.map(rowOf);
      if (live.length === 0) return rows;
      const sealedIds = await this.objects.sealedOf(pointer, new Set(live.map((row) => row.event_id)));
      const late = live.filter((row) => !sealedIds.has(row.event_id));
      return [...rows, ...late].toSorted(compareMessages).slice(0, limit);
    });
  }

  /**
   * Sealed messages of several rollouts, by `seq`; rollouts that were never sealed are absent. Late events that are still rows are not
   * among them: the caller reads the rows before, so that a rollout that is sealed in between is in one of both. The caller bounds the
   * size of the result.
   */
  async sealedMessages(seqs: readonly string[]): Promise<Map<string, TranscriptMessage[]>> {
    const found = new Map<string, TranscriptMessage[]>();
    const slice = new TimeSlice();
    let wanted = seqs;
    for (let attempt = 1; wanted.length > 0; attempt += 1) {
      const pointers = await selectPointers(this.database.pool, wanted);
      const lines = await this.objects.linesOfMany(pointers);
      for (const [seq, texts] of lines) {
        found.set(seq, texts.map(messageOf));
        if (slice.isOver) await slice.renew();
      }
      // The objects of the others were deleted since: those rollouts were sealed, merged or erased.
      wanted = [...pointers].flatMap(([seq, { chunks }]) => (lines.has(seq) || chunks.length === 0 ? [] : seq));
      if (wanted.length > 0 && attempt === MAX_ATTEMPTS)
        throw new Error(`the transcript ${pointers.get(wanted[0]!)!.blob_key} is not in the object store`);
    }
    return found;
  }

  /** All messages of several rollouts, by `seq`, as `messages` returns them. The caller bounds the size of the result. */
  async messagesOfMany(locations: readonly TranscriptLocation[]): Promise<Map<string, StoredMessageRow[]>> {
    const live = await selectLiveMessagesOfMany(this.database.pool, locations);
    // In this order, so that a rollout that is sealed in between appears in both.
    const sealed = await this.sealedMessages(locations.map(({ seq }) => seq));
    const merged = locations.map(({ seq }): [string, StoredMessageRow[]] => {
      const [late, rows] = [live.get(seq) ?? [], (sealed.get(seq) ?? []).map(rowOf)];
      if (rows.length === 0 || late.length === 0) return [seq, rows.length === 0 ? late : rows];
      const ids = new Set(rows.map(({ event_id }) => event_id));
      return [seq, [...rows, ...late.filter(({ event_id }) => !ids.has(event_id))].toSorted(compareMessages)];
    });
    return new Map(merged);
  }

  /** Skeletons for the normaliser, of sealed and unsealed rollouts, by `seq`. */
  async skeletons(locations: readonly TranscriptLocation[]): Promise<Map<string, MessageSkeleton[]>> {
    const { pool } = this.database;
    const live = await selectLiveSkeletons(pool, locations);
    // In this order, so that a rollout that is sealed in between appears in both.
    const pointers = await selectPointers(
      pool,
      locations.map(({ seq }) => seq),
    );
    const found = new Map<string, MessageSkeleton[]>();
    for (const location of locations) {
      const rows = live.get(location.seq) ?? [];
      found.set(location.seq, pointers.has(location.seq) ? await this.#mergedSkeletons(location) : rows);
    }
    return found;
  }

  /** First system and first user message of each rollout, joined by a line break; null without any. */
  async prompts(locations: readonly TranscriptLocation[]): Promise<Map<string, string | null>> {
    const { pool } = this.database;
    const found = await selectLivePrompts(pool, locations);
    const pointers = await selectPointers(
      pool,
      locations.map(({ seq }) => seq),
    );
    for (const location of locations) {
      if (pointers.has(location.seq)) found.set(location.seq, await this.#promptOf(location));
    }
    return found;
  }

  /** The messages that say what failed, by `seq`; long contents are cut (libs/rollouts). */
  async errors(locations: readonly ErrorLocation[]): Promise<Map<string, ErrorMessage>> {
    const { pool } = this.database;
    const found = await selectLiveErrors(pool, locations);
    // In this order, so that a rollout that is sealed in between appears in both.
    const pointers = await selectPointers(
      pool,
      locations.map(({ seq }) => seq),
    );
    const sealed = locations.filter(({ seq }) => pointers.has(seq));
    await mapLimit(sealed, SEALED_READS, async (location) => {
      const rows = await this.messages({ ...location, sealed: true }, { from: location.index, limit: MAX_REPEATS });
      const row = rows.find(({ index, flags }) => index === location.index && (flags & ERROR_FLAGS) !== 0);
      if (row) found.set(location.seq, { content: row.content, metadata: row.metadata });
    });
    return found;
  }

  #mergedSkeletons(location: TranscriptLocation): Promise<MessageSkeleton[]> {
    return this.#readConsistently({ ...location, sealed: true }, async (pointer) => {
      const live = (await selectLiveSkeletons(this.database.pool, [location])).get(location.seq) ?? [];
      const sealed: KeyedSkeleton[] = [];
      if (pointer !== null) for await (const line of this.objects.lines(pointer)) sealed.push(skeletonOf(messageOf(line)));
      const ids = new Set(sealed.map(({ eventId }) => eventId));
      const late = live.filter(({ eventId }) => !ids.has(eventId));
      return late.length === 0 ? sealed : [...sealed, ...late].toSorted(compareSkeletons);
    });
  }

  /** The first chunk is enough: few rollouts have more messages before their task. */
  async #promptOf(location: TranscriptLocation): Promise<string | null> {
    const first = new Map<string, StoredMessageRow>();
    for (const row of await this.messages({ ...location, sealed: true }, { limit: 200 })) {
      if (['system_message', 'user_message'].includes(row.type) && !first.has(row.type)) first.set(row.type, row);
    }
    const texts = [...first.values()].flatMap(({ content }) => content ?? []);
    return texts.length > 0 ? texts.join('\n') : null;
  }

  async #readConsistently<T>(location: TranscriptLocation, read: (pointer: TranscriptPointer | null) => Promise<T>): Promise<T> {
    const pointerNow = async () => (await selectPointers(this.database.pool, [location.seq])).get(location.seq) ?? null;
    let pointer = location.sealed ? await pointerNow() : null;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await read(pointer).catch((error: unknown) => {
        // The old object of a rollout that was just sealed again is deleted.
        if (error instanceof BlobError && error.kind === 'not_found' && attempt < MAX_ATTEMPTS) return { lost: error };
        throw error;
      });
      const after = await pointerNow();
      const same = after?.blob_key === pointer?.blob_key;
      const lost = typeof outcome === 'object' && outcome !== null && 'lost' in outcome ? (outcome.lost as BlobError) : null;
      if (same && lost) throw new Error(`the transcript ${pointer?.blob_key} is not in the object store`, { cause: lost });
      if (same) return outcome as T;
      if (attempt === MAX_ATTEMPTS)
        throw new Error(`rollout ${location.seq} was sealed during each of ${MAX_ATTEMPTS} attempts to read it`);
      pointer = after;
    }
  }
}

export const rowOf = (message: TranscriptMessage): StoredMessageRow => ({ ...message, sent_at: String(message.sent_at) });

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
