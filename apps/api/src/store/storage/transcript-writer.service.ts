import { Inject, Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import type { BlobStore } from '@palestra/blobs';
import {
  CHUNK_CHARACTERS,
  CHUNK_MESSAGES,
  compareMessages,
  TRANSCRIPT_EXTENSION,
  TRANSCRIPT_TYPE,
  TranscriptEncoder,
  type TranscriptLine,
  type TranscriptMessage,
} from '@palestra/rollouts/transcript';
import { Database } from '../../platform/database/database.ts';
import { BLOB_STORE } from '../../platform/tokens.ts';
import { rolloutPrefix } from './object-keys.ts';
import {
  type MessageCounts,
  type MessageKey,
  type RolloutText,
  type Sealable,
  type SealedObject,
  selectKeys,
  selectLines,
} from './seal.sql.ts';
import { messageOf, TranscriptObjects } from './transcript-objects.service.ts';
import { selectPointers } from './transcript.sql.ts';

const DEADLINE_MS = 60_000;

/** Writes transcripts to the object store, without their pointers. */
@Injectable()
export class TranscriptWriter {
  constructor(
    private readonly database: Database,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    private readonly objects: TranscriptObjects,
  ) {}

  /** A key of this attempt only, so that an object that one process discards is never one that another has just pointed to. */
  keyFor({ org_id, id, revision }: Sealable): string {
    return `${rolloutPrefix(org_id, id)}transcript-${revision}-${randomBytes(4).toString('hex')}.${TRANSCRIPT_EXTENSION}`;
  }

  /** Writes all lines of a small rollout, which are one text, as one chunk. */
  async writeText(rollout: Sealable, key: string, { text, ...range }: RolloutText, signal: AbortSignal): Promise<SealedObject> {
    const encoder = new TranscriptEncoder();
    return this.#put(rollout, key, encoder, await encoder.add(text, range), null, signal);
  }

  /** Writes any rollout in constant memory. Merges the sealed messages and later rows; of equal event ids the sealed one stays. */
  async writeLines(rollout: Sealable, key: string, signal: AbortSignal): Promise<SealedObject> {
    const { pool } = this.database;
    const keys = await selectKeys(pool, rollout);
    const encoder = new TranscriptEncoder();
    const pointer = rollout.resealed ? ((await selectPointers(pool, [rollout.seq])).get(rollout.seq) ?? null) : null;
    if (pointer === null) return this.#put(rollout, key, encoder, encoder.encode(this.#live(rollout, keys)), null, signal);
    const sealedIds = await this.objects.sealedOf(pointer, new Set(keys.map(({ event_id }) => event_id)));
    const late = this.#live(
      rollout,
      keys.filter(({ event_id }) => !sealedIds.has(event_id)),
    );
    const counts: MessageCounts = { calls: 0, max_index: -1, body_bytes: 0, output_chars: 0 };
    const merged = countMessages(mergeLines(sealedLines(this.objects.lines(pointer)), late), counts);
    return this.#put(rollout, key, encoder, encoder.encode(merged), counts, signal);
  }

  async *#live(rollout: Sealable, keys: readonly MessageKey[]): AsyncGenerator<TranscriptLine> {
    for (const portion of portions(keys)) yield* await selectLines(this.database.pool, rollout, portion);
  }

  async #put(
    { seq, revision }: Sealable,
    key: string,
    encoder: TranscriptEncoder,
    body: Uint8Array | AsyncIterable<Uint8Array>,
    counts: MessageCounts | null,
    signal: AbortSignal,
  ): Promise<SealedObject> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
    const { size } = await this.blobs.put(key, body, { contentType: TRANSCRIPT_TYPE }, deadline);
    const { chunks, messages, bytes } = encoder;
    if (size !== bytes) throw new Error(`the object store stored ${size} of the ${bytes} bytes of ${key}`);
    return { seq, revision, blob_key: key, chunks, messages, bytes, counts };
  }
}

/** Event ids of messages that are read together, about a chunk. */
function* portions(keys: readonly MessageKey[]): Generator<string[]> {
  let open: string[] = [];
  let bytes = 0;
  for (const key of keys) {
    if (open.length === CHUNK_MESSAGES || (open.length > 0 && bytes + key.bytes > CHUNK_CHARACTERS)) {
      yield open;
      open = [];
      bytes = 0;
    }
    open.push(key.event_id);
    bytes += key.bytes;
  }
  if (open.length > 0) yield open;
}

async function* sealedLines(lines: AsyncIterable<string>): AsyncGenerator<TranscriptLine> {
  for await (const text of lines) {
    const { index, event_id } = messageOf(text);
    yield { index, event_id, text };
  }
}

/** Merges two sequences in the order of transcripts. */
async function* mergeLines(first: AsyncIterable<TranscriptLine>, second: AsyncIterable<TranscriptLine>): AsyncGenerator<TranscriptLine> {
  const [a, b] = [first[Symbol.asyncIterator](), second[Symbol.asyncIterator]()];
  let [left, right] = [await a.next(), await b.next()];
  while (!left.done || !right.done) {
    if (right.done || (!left.done && compareMessages(left.value, right.value) <= 0)) {
      yield (left as IteratorYieldResult<TranscriptLine>).value;
      left = await a.next();
    } else {
      yield right.value;
      right = await b.next();
    }
  }
}

async function* countMessages(lines: AsyncIterable<TranscriptLine>, counts: MessageCounts): AsyncGenerator<TranscriptLine> {
  for await (const line of lines) {
    const message = messageOf(line.text);
    counts.calls += message.type === 'tool_call' ? 1 : 0;
    counts.max_index = Math.max(counts.max_index, message.index);
    counts.body_bytes += message.bytes;
    counts.output_chars += outputCharacters(message);
    yield line;
  }
}

/** Counts code points, as ingest does. */
function outputCharacters({ type, content, summary }: TranscriptMessage): number {
  if (!['assistant_message', 'tool_call', 'reasoning'].includes(type)) return 0;
  return [...(content ?? '')].length + (type === 'reasoning' ? [...(summary ?? '')].length : 0);
}
