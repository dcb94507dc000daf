import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { JsonObject } from '@palestra/protocol';
import { fingerprintsOf } from './event-fingerprints.ts';

/**
 * The messages of one rollout as one object: JSON lines, one message a line, ordered by index and event id, in gzip members of at
 * most `CHUNK_MESSAGES` messages that can be read one by one. Members one after another are a gzip file (RFC 1952, 2.2), so that
 * `zcat`, DuckDB and Spark read the whole of it, and each carries the CRC-32 of what is in it, which is checked whenever it is read.
 * (Zstandard is smaller still, but Node has it only from 22.15, and a second implementation would be needed for every reader.)
 */
export const TRANSCRIPT_EXTENSION = 'jsonl.gz';
export const TRANSCRIPT_TYPE = 'application/gzip';
export const CHUNK_MESSAGES = 200;
/** A chunk is closed when it has so many characters; one longer message is a chunk of its own. */
export const CHUNK_CHARACTERS = 1024 * 1024;
/** Half of the time of the default level for 5 % more bytes. */
const LEVEL = 4;

const gzip = promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gzip);
const gunzip = promisify<zlib.InputType, Buffer>(zlib.gunzip);

/** A message as a line has it: the columns of rollout_messages, without those that say where the row is. */
export interface TranscriptMessage {
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
 * Where a chunk is and what is in it. `at` and `bytes`: its place in the object; `first` and `last`: indexes of its messages;
 * `ids`: fingerprints of their event ids (event-fingerprints.ts), which chunks that were written before there were any do not have.
 */
export interface TranscriptChunk {
  first: number;
  last: number;
  count: number;
  at: number;
  bytes: number;
  ids?: string;
}

/** `text` is the JSON of a message without line breaks. */
export interface TranscriptLine {
  event_id: string;
  index: number;
  text: string;
}

/** What was read is not what was written. */
export class TranscriptError extends Error {}

/** The order of messages in a transcript and in every page: by index, equal ones by event id. */
export function compareMessages(
  a: Pick<TranscriptMessage, 'index' | 'event_id'>,
  b: Pick<TranscriptMessage, 'index' | 'event_id'>,
): number {
  return a.index - b.index || (a.event_id < b.event_id ? -1 : a.event_id > b.event_id ? 1 : 0);
}

/** Compresses lines, in the order of `compareMessages`, chunk by chunk; `chunks` and `bytes` are complete when `encode` has ended. */
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
    const place = { first: lines[0]!.index, last: lines.at(-1)!.index, eventIds: lines.map(({ event_id }) => event_id) };
    return this.add(lines.map(({ text }) => text).join('\n'), place);
  }

  /** A chunk whose lines are one text already; `eventIds`: one a line. */
  async add(text: string, { first, last, eventIds }: { first: number; last: number; eventIds: readonly string[] }): Promise<Buffer> {
    const compressed = await gzip(`${text}\n`, { level: LEVEL });
    const count = eventIds.length;
    this.chunks.push({ first, last, count, at: this.bytes, bytes: compressed.length, ids: fingerprintsOf(eventIds) });
    this.bytes += compressed.length;
    this.messages += count;
    return compressed;
  }
}

/** Neighbouring chunks and the bytes that they are in, both ends inclusive. */
export interface TranscriptRange {
  chunks: TranscriptChunk[];
  start: number;
  end: number;
}

/** The one range that holds the first `limit` messages with an index of at least `from`; null when there is none. */
export function rangeOf(chunks: readonly TranscriptChunk[], from = 0, limit = Infinity): TranscriptRange | null {
  const begin = chunks.findIndex(({ last }) => last >= from);
  if (begin < 0 || limit <= 0) return null;
  let end = begin + 1;
  // Of the first chunk at least one message counts, of later ones all.
  for (let sure = 1; end < chunks.length && sure < limit; end += 1) sure += chunks[end]!.count;
  const selected = chunks.slice(begin, end);
  const last = selected.at(-1)!;
  return { chunks: selected, start: selected[0]!.at, end: last.at + last.bytes - 1 };
}

/** Ranges of at most `bytes` each (or one chunk), for readers that go through the whole of a long transcript. */
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

/** Lines of the chunks of a range, from its bytes. Throws `TranscriptError` when bytes are missing, damaged or somebody else's. */
export async function decodeLines(bytes: Uint8Array, range: TranscriptRange): Promise<string[]> {
  if (bytes.length !== range.end - range.start + 1)
    throw new TranscriptError(`a transcript answered ${bytes.length} bytes of ${range.end - range.start + 1}`);
  const parts = await Promise.all(range.chunks.map((chunk) => decodeChunk(bytes, chunk, chunk.at - range.start)));
  return parts.flat();
}

async function decodeChunk(bytes: Uint8Array, chunk: TranscriptChunk, at: number): Promise<string[]> {
  let text: string;
  try {
    text = (await gunzip(bytes.subarray(at, at + chunk.bytes))).toString('utf8');
  } catch (error) {
    throw new TranscriptError(`a chunk of a transcript is damaged: ${(error as Error).message}`, { cause: error });
  }
  const lines = text.split('\n');
  if (lines.pop() !== '' || lines.length !== chunk.count) {
    throw new TranscriptError(`a chunk of a transcript has ${lines.length} messages, its index says ${chunk.count}`);
  }
  return lines;
}
