import { Inject, Injectable } from '@nestjs/common';
import { buffer } from 'node:stream/consumers';
import { BlobError, type BlobStore } from '@palestra/blobs';
import {
  decodeLines,
  mayHold,
  rangeOf,
  splitRanges,
  type TranscriptMessage,
  type TranscriptRange,
  wantedFingerprints,
} from '@palestra/rollouts/transcript';
import { BLOB_STORE } from '../../platform/tokens.ts';
import { mapLimit } from './map-limit.ts';
import type { TranscriptPointer } from './transcript.sql.ts';

const DEADLINE_MS = 30_000;
/** Compressed bytes in memory when a whole transcript is read. */
const WINDOW_BYTES = 4 * 1024 * 1024;
/** Unused bytes that are read to save a request. */
const GAP_BYTES = 64 * 1024;
/** Concurrent requests when several transcripts are read. */
const CONCURRENCY = 8;

/** Reads sealed transcripts. Throws `BlobError`, and `TranscriptError` for a damaged one. */
@Injectable()
export class TranscriptObjects {
  constructor(@Inject(BLOB_STORE) private readonly blobs: BlobStore) {}

  /** The first `limit` messages from index `from` on, by one request for one range. */
  async page(pointer: TranscriptPointer, from: number, limit: number): Promise<TranscriptMessage[]> {
    const range = rangeOf(pointer.chunks, from, limit);
    if (range === null) return [];
    const messages = (await this.#lines(pointer, range)).map(messageOf);
    return messages.filter(({ index }) => index >= from).slice(0, limit);
  }

  /** Every line, in constant memory. */
  async *lines(pointer: TranscriptPointer): AsyncGenerator<string> {
    for (const range of splitRanges(pointer.chunks, WINDOW_BYTES)) yield* await this.#lines(pointer, range);
  }

  /**
   * Every line of several transcripts, by the keys of `pointers`; neighbours in one object share a request. The caller bounds their size.
   * Transcripts whose object was deleted meanwhile, because they were sealed or merged again, are absent.
   */
  async linesOfMany<K>(pointers: ReadonlyMap<K, TranscriptPointer>): Promise<Map<K, string[]>> {
    const found = new Map<K, string[]>();
    await mapLimit(neighbours(pointers), CONCURRENCY, async ({ blob_key, start, end, members }) => {
      const bytes = await this.#bytes(blob_key, { start, end }).catch((error: unknown) => {
        if (error instanceof BlobError && error.kind === 'not_found') return null;
        throw error;
      });
      if (bytes === null) return;
      for (const { key, range } of members) {
        const part = bytes.subarray(range.start - start, range.end - start + 1);
        found.set(key, await decodeLines(part, range));
      }
    });
    return found;
  }

  /** The given event ids that are sealed. */
  async sealedOf(pointer: TranscriptPointer, eventIds: ReadonlySet<string>): Promise<Set<string>> {
    const sealed = new Set<string>();
    for await (const { event_id } of this.find(pointer, eventIds)) sealed.add(event_id);
    return sealed;
  }

  /** The messages with these event ids. Reads only chunks that may have one. */
  async *find(pointer: TranscriptPointer, eventIds: ReadonlySet<string>): AsyncGenerator<TranscriptMessage> {
    const wanted = wantedFingerprints(eventIds);
    for (const chunk of pointer.chunks) {
      if (!mayHold(chunk.ids, wanted)) continue;
      for (const line of await this.#lines(pointer, rangeOf([chunk])!)) {
        const message = messageOf(line);
        if (eventIds.has(message.event_id)) yield message;
      }
    }
  }

  async #lines(pointer: TranscriptPointer, range: TranscriptRange): Promise<string[]> {
    return decodeLines(await this.#bytes(pointer.blob_key, range), range);
  }

  async #bytes(key: string, { start, end }: { start: number; end: number }): Promise<Buffer> {
    const { body } = await this.blobs.get(key, { start, end }, AbortSignal.timeout(DEADLINE_MS));
    return buffer(body);
  }
}

interface Neighbours<K> {
  blob_key: string;
  start: number;
  end: number;
  members: { key: K; range: TranscriptRange }[];
}

/** Transcripts by object and position, together where little lies between them. */
function neighbours<K>(pointers: ReadonlyMap<K, TranscriptPointer>): Neighbours<K>[] {
  const items = [...pointers].flatMap(([key, { blob_key, chunks }]) => {
    const range = rangeOf(chunks);
    return range === null ? [] : [{ key, blob_key, range }];
  });
  items.sort((a, b) => (a.blob_key < b.blob_key ? -1 : a.blob_key > b.blob_key ? 1 : a.range.start - b.range.start));
  const groups: Neighbours<K>[] = [];
  for (const { key, blob_key, range } of items) {
    const open = groups.at(-1);
    if (open?.blob_key === blob_key && range.start - open.end <= GAP_BYTES && range.end - open.start < WINDOW_BYTES) {
      open.members.push({ key, range });
      open.end = range.end;
    } else groups.push({ blob_key, start: range.start, end: range.end, members: [{ key, range }] });
  }
  return groups;
}

export const messageOf = (line: string): TranscriptMessage => JSON.parse(line) as TranscriptMessage;
