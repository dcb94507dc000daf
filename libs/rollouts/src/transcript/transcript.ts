import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { JsonObject } from '@palestra/protocol';
import { fingerprintsOf } from './event-fingerprints.ts';

/**
 * The messages of a rollout: JSON lines ordered by index and event id, in gzip members of at most `CHUNK_MESSAGES` messages that can be
 * read separately. A pack is the members of many rollouts in one object. Concatenated members are a gzip file (RFC 1952, 2.2), so `zcat`,
 * DuckDB and Spark can read it. Each read checks the CRC-32 of its members. Zstandard would be smaller, but Node has it only from 22.15.
 */
export const TRANSCRIPT_EXTENSION = 'jsonl.gz';
export const TRANSCRIPT_TYPE = 'application/gzip';
export const CHUNK_MESSAGES = 200;
/** A chunk is closed at this many characters. A longer message is a chunk by itself. */
export const CHUNK_CHARACTERS = 1024 * 1024;
/** Takes half the time of the default level for 5 % more bytes. */
const LEVEL = 4;
/** A smaller chunk is unpacked at once: passing it to another thread takes longer. */
const SYNC_BYTES = 16 * 1024;

const gzip = promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gzip);
const gunzip = promisify<zlib.InputType, Buffer>(zlib.gunzip);

/** A message in a line: the columns of rollout_messages without those that locate the row, and the id of the rollout. */
export interface TranscriptMessage {
  /** Absent in transcripts that were sealed before packs. */
  rollout_id?: string;
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
  sent_at: number;
}

/**
 * Position and content of a chunk. `at` and `bytes`: its range, in the transcript while it is written, in the object when it is read;
 * `first` and `last`: indexes of its messages; `ids`: fingerprints of its event ids (event-fingerprints.ts), absent in old chunks.
 */
export interface TranscriptChunk {
  first: number;
  last: number;
  count: number;
  at: number;
  bytes: number;
  ids?: string;
}

type PackedChunk = [first: number, last: number, count: number, bytes: number, ids: string | null];

/** Chunks of one transcript as the store keeps them. Their `at` follows from their order. */
export function chunksText(chunks: readonly TranscriptChunk[]): string {
  return JSON.stringify(chunks.map(({ first, last, count, bytes, ids }): PackedChunk => [first, last, count, bytes, ids ?? null]));
}

/** The reverse of `chunksText`, for a transcript that begins at byte `at` of its object. */
export function chunksOf(text: string, at: number): TranscriptChunk[] {
  let next = at;
  return (JSON.parse(text) as PackedChunk[]).map(([first, last, count, bytes, ids]) => {
    const chunk = { first, last, count, at: next, bytes, ...(ids === null ? {} : { ids }) };
    next += bytes;
    return chunk;
  });
}

/** `text`: the JSON of a message without line breaks. */
export interface TranscriptLine {
  event_id: string;
  index: number;
  text: string;
}

/** The read bytes are not the written ones. */
export class TranscriptError extends Error {}

/** Order of messages in a transcript and on every page: by index, then by event id. */
export function compareMessages(
  a: Pick<TranscriptMessage, 'index' | 'event_id'>,
  b: Pick<TranscriptMessage, 'index' | 'event_id'>,
): number {
  return a.index - b.index || (a.event_id < b.event_id ? -1 : a.event_id > b.event_id ? 1 : 0);
}

/**
 * Compresses lines that are in the order of `compareMessages`, chunk by chunk. `chunks` and `bytes` are complete when `encode` has ended.
 */
export class TranscriptEncoder {
  readonly chunks: TranscriptChunk[] = [];
  bytes = 0;
  messages = 0;

  async *encode(lines: AsyncIterable<TranscriptLine> | Iterable<TranscriptLine>): AsyncGenerator<Buffer> {
    let open: TranscriptLine[] = [];
    let characters = 0;
    for await (const line of lines) {
      if (open.length > 0 && (open.length === CHUNK_MESSAGES || characters + line.text.length > CHUNK_CHARACTERS)) {
        yield await this.#close(open);
        open = [];
        characters = 0;
      }
      open.push(line);
      characters += line.text.length;
    }
    if (open.length > 0) yield await this.#close(open);
  }

  #close(lines: readonly TranscriptLine[]): Promise<Buffer> {
    const content = { first: lines[0]!.index, last: lines.at(-1)!.index, eventIds: lines.map(({ event_id }) => event_id) };
    return this.add(lines.map(({ text }) => text).join('\n'), content);
  }

  /** Adds a chunk whose lines are already joined. `eventIds`: one for each line. */
  async add(text: string, { first, last, eventIds }: { first: number; last: number; eventIds: readonly string[] }): Promise<Buffer> {
    const compressed = await gzip(`${text}\n`, { level: LEVEL });
    const count = eventIds.length;
    this.chunks.push({ first, last, count, at: this.bytes, bytes: compressed.length, ids: fingerprintsOf(eventIds) });
    this.bytes += compressed.length;
    this.messages += count;
    return compressed;
  }
}

/** Neighbouring chunks and their byte range, both ends inclusive. */
export interface TranscriptRange {
  chunks: TranscriptChunk[];
  start: number;
  end: number;
}

/** The range with the first `limit` messages with an index of at least `from`; null if there are none. */
export function rangeOf(chunks: readonly TranscriptChunk[], from = 0, limit = Infinity): TranscriptRange | null {
  const begin = chunks.findIndex(({ last }) => last >= from);
  if (begin < 0 || limit <= 0) return null;
  let end = begin + 1;
  // The first chunk has at least one such message, later chunks have only such messages.
  for (let sure = 1; end < chunks.length && sure < limit; end += 1) sure += chunks[end]!.count;
  const selected = chunks.slice(begin, end);
  const last = selected.at(-1)!;
  return { chunks: selected, start: selected[0]!.at, end: last.at + last.bytes - 1 };
}

/** Ranges of at most `bytes` each, or one chunk, for readers of a whole transcript. */
export function splitRanges(chunks: readonly TranscriptChunk[], bytes: number): TranscriptRange[] {
  const ranges: TranscriptRange[] = [];
  for (const chunk of chunks) {
    const open = ranges.at(-1);
    const end = chunk.at + chunk.bytes - 1;
    if (open && end - open.start < bytes) {
      open.chunks.push(chunk);
      open.end = end;
    } else ranges.push({ chunks: [chunk], start: chunk.at, end });
  }
  return ranges;
}

/** Returns the lines of a range from its bytes. Throws `TranscriptError` if bytes are missing, damaged or of another object. */
export async function decodeLines(bytes: Uint8Array, range: TranscriptRange): Promise<string[]> {
  if (bytes.length !== range.end - range.start + 1)
    throw new TranscriptError(`a transcript answered ${bytes.length} bytes of ${range.end - range.start + 1}`);
  const parts = await Promise.all(range.chunks.map((chunk) => decodeChunk(bytes, chunk, chunk.at - range.start)));
  return parts.flat();
}

async function decodeChunk(bytes: Uint8Array, chunk: TranscriptChunk, at: number): Promise<string[]> {
  let text: string;
  try {
    const packed = bytes.subarray(at, at + chunk.bytes);
    text = (chunk.bytes <= SYNC_BYTES ? zlib.gunzipSync(packed) : await gunzip(packed)).toString('utf8');
  } catch (error) {
    throw new TranscriptError(`a chunk of a transcript is damaged: ${(error as Error).message}`, { cause: error });
  }
  const lines = text.split('\n');
  if (lines.pop() !== '' || lines.length !== chunk.count) {
    throw new TranscriptError(`a chunk of a transcript has ${lines.length} messages, its index says ${chunk.count}`);
  }
  return lines;
}

/** Adds the id of its rollout to a line from before packs. */
export const withRolloutId = (line: string, rolloutId: string): string =>
  line.startsWith('{"rollout_id":') ? line : `{"rollout_id":${JSON.stringify(rolloutId)},${line.slice(1)}`;

/** A chunk from before packs, with the id of its rollout in each line. Throws `TranscriptError` if it is damaged. */
export async function recodeChunk(bytes: Uint8Array, chunk: TranscriptChunk, rolloutId: string): Promise<Buffer> {
  // A text may contain other line breaks, which JSON does not escape.
  const lines = await decodeChunk(bytes, chunk, 0);
  return gzip(lines.map((line) => `${withRolloutId(line, rolloutId)}\n`).join(''), { level: LEVEL });
}
