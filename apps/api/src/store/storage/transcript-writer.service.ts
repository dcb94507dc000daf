import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import { newUuid } from '@palestra/kit';
import {
  CHUNK_CHARACTERS,
  CHUNK_MESSAGES,
  compareMessages,
  TRANSCRIPT_EXTENSION,
  TRANSCRIPT_TYPE,
  TranscriptEncoder,
  type TranscriptLine,
  type TranscriptMessage,
  withRolloutId,
} from '@palestra/rollouts/transcript';
import { Database } from '../../platform/database/database.ts';
import { BLOB_STORE } from '../../platform/tokens.ts';
import { limitStalls } from './limit-stalls.ts';
import { packPrefix } from './object-keys.ts';
import {
  type MessageCounts,
  type MessageKey,
  type RolloutText,
  type Sealable,
  type SealedPack,
  type SealedTranscript,
  selectKeys,
  selectLines,
} from './seal.sql.ts';
import { messageOf, TranscriptObjects } from './transcript-objects.service.ts';
import { selectPointers } from './transcript.sql.ts';

/** In which the store takes a piece of an object. All pieces of a very long rollout may take longer. */
const STALL_MS = 60_000;

/** Writes transcripts to the object store, without their pointers. */
@Injectable()
export class TranscriptWriter {
  constructor(
    private readonly database: Database,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    private readonly objects: TranscriptObjects,
  ) {}

  /** A key of this attempt only, so that an object that one process discards is never one that another has just pointed to. */
  newKey(orgId: string): string {
    return `${packPrefix(orgId)}${newUuid()}.${TRANSCRIPT_EXTENSION}`;
  }

  /** Writes small rollouts, each of which is one text and becomes one chunk. */
  async writeTexts(
    rollouts: readonly Sealable[],
    key: string,
    texts: ReadonlyMap<string, RolloutText>,
    signal: AbortSignal,
  ): Promise<SealedPack> {
    const bodies: Buffer[] = [];
    const transcripts: SealedTranscript[] = [];
    let at = 0;
    for (const rollout of rollouts) {
      const { text, ...range } = texts.get(rollout.seq)!;
      const encoder = new TranscriptEncoder();
      bodies.push(await encoder.add(text, range));
      transcripts.push(sealedTranscript(rollout, at, encoder, null));
      at += encoder.bytes;
    }
    await this.#put(key, Buffer.concat(bodies), () => at, signal);
    return { ...packOf(rollouts[0]!, key), bytes: at, transcripts };
  }

  /** Writes any rollout in constant memory. Merges the sealed messages and later rows; of equal event ids the sealed one stays. */
  async writeLines(rollout: Sealable, key: string, signal: AbortSignal): Promise<SealedPack> {
    const { pool } = this.database;
    const keys = await selectKeys(pool, rollout);
    const encoder = new TranscriptEncoder();
    const pointer = rollout.resealed ? ((await selectPointers(pool, [rollout.seq])).get(rollout.seq) ?? null) : null;
    let lines: AsyncIterable<TranscriptLine>;
    let counts: MessageCounts | null = null;
    if (pointer === null) lines = this.#live(rollout, keys);
    else {
      const sealedIds = await this.objects.sealedOf(pointer, new Set(keys.map(({ event_id }) => event_id)));
      const late = this.#live(
        rollout,
        keys.filter(({ event_id }) => !sealedIds.has(event_id)),
      );
      counts = { calls: 0, max_index: -1, body_bytes: 0, output_chars: 0 };
      lines = countMessages(mergeLines(sealedLines(this.objects.lines(pointer), rollout.id), late), counts);
    }
    await this.#put(key, encoder.encode(lines), () => encoder.bytes, signal);
    return { ...packOf(rollout, key), bytes: encoder.bytes, transcripts: [sealedTranscript(rollout, 0, encoder, counts)] };
  }

  async *#live(rollout: Sealable, keys: readonly MessageKey[]): AsyncGenerator<TranscriptLine> {
    for (const portion of portions(keys)) yield* await selectLines(this.database.pool, rollout, portion);
  }

  async #put(key: string, body: Uint8Array | AsyncIterable<Uint8Array>, bytes: () => number, signal: AbortSignal): Promise<void> {
    const { size } = await limitStalls(body, STALL_MS, signal, (watched, stop) =>
      this.blobs.put(key, watched, { contentType: TRANSCRIPT_TYPE }, stop),
    );
    if (size !== bytes()) throw new Error(`the object store stored ${size} of the ${bytes()} bytes of ${key}`);
  }
}

const packOf = ({ org_id, run_seq }: Sealable, blob_key: string) => ({ blob_key, org_id, run_seq });

function sealedTranscript(
  { seq, revision }: Sealable,
  at: number,
  { chunks, messages, bytes }: TranscriptEncoder,
  counts: MessageCounts | null,
): SealedTranscript {
  return { seq, revision, at, chunks, messages, bytes, counts };
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

async function* sealedLines(lines: AsyncIterable<string>, rolloutId: string): AsyncGenerator<TranscriptLine> {
  for await (const text of lines) {
    const { index, event_id } = messageOf(text);
    yield { index, event_id, text: withRolloutId(text, rolloutId) };
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
