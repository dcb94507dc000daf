import { Inject, Injectable } from '@nestjs/common';
import { buffer } from 'node:stream/consumers';
import type { BlobStore } from '@palestra/blobs';
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
import type { TranscriptPointer } from './transcript.sql.ts';

const DEADLINE_MS = 30_000;
/** Compressed bytes in memory when a whole transcript is read. */
const WINDOW_BYTES = 4 * 1024 * 1024;

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
    const { body } = await this.blobs.get(pointer.blob_key, range, AbortSignal.timeout(DEADLINE_MS));
    return decodeLines(await buffer(body), range);
  }
}

export const messageOf = (line: string): TranscriptMessage => JSON.parse(line) as TranscriptMessage;
