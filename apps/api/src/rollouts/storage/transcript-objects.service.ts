import { Inject, Injectable } from '@nestjs/common';
import { buffer } from 'node:stream/consumers';
import type { BlobStore } from '@palestra/blobs';
import { decodeLines, rangeOf, splitRanges, type TranscriptMessage, type TranscriptRange } from '@palestra/rollouts/transcript';
import { BLOB_STORE } from '../../platform/tokens.ts';
import type { TranscriptPointer } from './transcript.sql.ts';

const DEADLINE_MS = 30_000;
/** Compressed bytes that are in memory at the same time when the whole of a transcript is gone through. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** Reads of sealed transcripts. Throws `BlobError`, and `TranscriptError` for one that is damaged. */
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

  /** Of these event ids the ones that are sealed. */
  async sealedOf(pointer: TranscriptPointer, eventIds: ReadonlySet<string>): Promise<Set<string>> {
    const sealed = new Set<string>();
    if (eventIds.size === 0) return sealed;
    for await (const line of this.lines(pointer)) {
      const { event_id } = messageOf(line);
      if (eventIds.has(event_id)) sealed.add(event_id);
    }
    return sealed;
  }

  async #lines(pointer: TranscriptPointer, range: TranscriptRange): Promise<string[]> {
    const { body } = await this.blobs.get(pointer.blob_key, range, AbortSignal.timeout(DEADLINE_MS));
    return decodeLines(await buffer(body), range);
  }
}

export const messageOf = (line: string): TranscriptMessage => JSON.parse(line) as TranscriptMessage;
