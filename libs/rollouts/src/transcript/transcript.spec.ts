import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CHUNK_CHARACTERS,
  CHUNK_MESSAGES,
  chunksOf,
  chunksText,
  compareMessages,
  decodeLines,
  mayHold,
  rangeOf,
  recodeChunk,
  splitRanges,
  TranscriptEncoder,
  TranscriptError,
  type TranscriptMessage,
  type TranscriptRange,
  wantedFingerprints,
  withRolloutId,
} from './index.ts';
import { full } from '../../../../tests/support/full.ts';

const text = fc.option(fc.string({ unit: 'grapheme', maxLength: 300 }), { nil: null });
const arbitraryMessage: fc.Arbitrary<TranscriptMessage> = fc.record({
  event_id: fc.uuid(),
  index: fc.nat({ max: 400 }),
  type: fc.constantFrom('user_message', 'assistant_message', 'tool_call', 'tool_result'),
  name: text,
  call_id: text,
  content: text,
  content_reference: text,
  summary: text,
  reward: fc.option(
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
    { nil: null },
  ),
  is_finished: fc.boolean(),
  flags: fc.nat(),
  bytes: fc.nat(),
  blob_key: text,
  metadata: fc.option(
    fc.dictionary(fc.string({ maxLength: 8 }), fc.string()).map((value) => JSON.parse(JSON.stringify(value))),
    { nil: null },
  ),
  extra: fc.constant(null),
  sent_at: fc.integer({ min: 0, max: 8.64e15 }),
});
const arbitraryMessages = fc.array(arbitraryMessage, { maxLength: 700, size: 'max' }).map((messages) => messages.toSorted(compareMessages));

const message = (index: number, content: string): TranscriptMessage => ({
  event_id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
  index,
  type: 'assistant_message',
  name: null,
  call_id: null,
  content,
  content_reference: null,
  summary: null,
  reward: null,
  is_finished: false,
  flags: 0,
  bytes: content.length,
  blob_key: null,
  metadata: null,
  extra: null,
  sent_at: 0,
});

async function encode(messages: readonly TranscriptMessage[]) {
  const encoder = new TranscriptEncoder();
  const parts: Buffer[] = [];
  const lines = messages.map((message) => ({ event_id: message.event_id, index: message.index, text: JSON.stringify(message) }));
  for await (const part of encoder.encode(lines)) parts.push(part);
  return { body: Buffer.concat(parts), encoder };
}

async function decodeMessages(bytes: Uint8Array, range: TranscriptRange): Promise<TranscriptMessage[]> {
  return (await decodeLines(bytes, range)).map((line) => JSON.parse(line) as TranscriptMessage);
}

describe('a transcript', () => {
  it('gives back every message, and any page of them from one range', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryMessages, fc.nat({ max: 450 }), fc.integer({ min: 1, max: 500 }), async (messages, from, limit) => {
        const { body, encoder } = await encode(messages);
        expect(encoder).toMatchObject({ bytes: body.length, messages: messages.length });
        const whole = rangeOf(encoder.chunks);
        expect(whole === null ? [] : await decodeMessages(body.subarray(whole.start, whole.end + 1), whole)).toEqual(messages);
        const range = rangeOf(encoder.chunks, from, limit);
        const read = range === null ? [] : await decodeMessages(body.subarray(range.start, range.end + 1), range);
        const expected = messages.filter(({ index }) => index >= from).slice(0, limit);
        expect(read.filter(({ index }) => index >= from).slice(0, limit)).toEqual(expected);
      }),
      { numRuns: full ? 40 : 12 },
    );
  });

  it('is a gzip file of JSON lines for every other reader', async () => {
    const messages = Array.from({ length: 450 }, (_, index) => message(index, `line\nbreak \u2028 ü ${index}`));
    const { body, encoder } = await encode(messages);
    expect(encoder.chunks.map(({ count }) => count)).toEqual([CHUNK_MESSAGES, CHUNK_MESSAGES, 50]);
    const lines = gunzipSync(body).toString().trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(messages);
  });

  it('reads little of ten thousand messages for a page', async () => {
    const { body, encoder } = await encode(Array.from({ length: 10_000 }, (_, index) => message(index, `${index}`.repeat(50))));
    const range = rangeOf(encoder.chunks, 9_000, 100)!;
    expect(range.end - range.start).toBeLessThan(body.length / 20);
    const read = await decodeMessages(body.subarray(range.start, range.end + 1), range);
    expect(read.filter(({ index }) => index >= 9_000)[0]?.index).toBe(9_000);
  });

  it('tells which chunks may hold an event without being read', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryMessages, fc.array(fc.uuid(), { minLength: 1 }), async (messages, others) => {
        const { encoder } = await encode(messages);
        let at = 0;
        for (const { ids, count } of encoder.chunks) {
          for (const { event_id } of messages.slice(at, at + count)) {
            expect(mayHold(ids, wantedFingerprints([...others, event_id]))).toBe(true);
          }
          expect(mayHold(ids, wantedFingerprints([]))).toBe(false);
          at += count;
        }
        expect(mayHold(undefined, wantedFingerprints(others))).toBe(true);
      }),
      { numRuns: full ? 20 : 6 },
    );
    const { encoder } = await encode(Array.from({ length: 1_000 }, (_, index) => message(index, 'x')));
    const wanted = wantedFingerprints([message(420, '').event_id]);
    expect(encoder.chunks.map(({ ids }) => mayHold(ids, wanted))).toEqual([false, false, true, false, false]);
    expect(encoder.chunks[0]!.ids).toHaveLength(Math.ceil((CHUNK_MESSAGES * 4) / 3) * 4);
  });

  it('closes a chunk when it is large', async () => {
    const { encoder } = await encode([message(0, 'x'), message(1, 'x'.repeat(2 * CHUNK_CHARACTERS)), message(2, 'x'), message(3, 'x')]);
    expect(encoder.chunks.map(({ first, last, count }) => [first, last, count])).toEqual([
      [0, 0, 1],
      [1, 1, 1],
      [2, 3, 2],
    ]);
  });

  it('is gone through in ranges of bounded size that hold all of it', async () => {
    const { body, encoder } = await encode(Array.from({ length: 3_000 }, (_, index) => message(index, `${index} `.repeat(30))));
    const ranges = splitRanges(encoder.chunks, body.length / 4);
    expect(ranges.length).toBeGreaterThan(3);
    const read = await Promise.all(ranges.map((range) => decodeMessages(body.subarray(range.start, range.end + 1), range)));
    expect(read.flat().map(({ index }) => index)).toEqual(Array.from({ length: 3_000 }, (_, index) => index));
  });

  it('keeps its chunks as a text from which positions in a pack follow', async () => {
    const { encoder } = await encode(Array.from({ length: 450 }, (_, index) => message(index, `${index}`)));
    const { ids: _, ...old } = encoder.chunks[2]!;
    const chunks = [...encoder.chunks.slice(0, 2), old];
    expect(chunksOf(chunksText(chunks), 0)).toEqual(chunks);
    expect(chunksOf(chunksText(chunks), 77)).toEqual(chunks.map((chunk) => ({ ...chunk, at: 77 + chunk.at })));
  });

  it('from before packs gets the id of its rollout in every line, and nothing else', async () => {
    const messages = Array.from({ length: 30 }, (_, index) => message(index, `a\u2028{"b"\u2029{\n{ ${index}`));
    const { body, encoder } = await encode(messages);
    const [chunk] = encoder.chunks;
    const recoded = await recodeChunk(body, chunk!, 'r1');
    const range = rangeOf([{ ...chunk!, bytes: recoded.length }])!;
    expect(await decodeMessages(recoded, range)).toEqual(messages.map((one) => ({ rollout_id: 'r1', ...one })));
    const [line] = await decodeLines(recoded, range);
    expect(withRolloutId(line!, 'r1')).toBe(line);
    await expect(recodeChunk(body.subarray(0, 40), chunk!, 'r1')).rejects.toThrow(TranscriptError);
  });

  it('refuses bytes that were changed, cut or belong to another one', async () => {
    const messages = Array.from({ length: 300 }, (_, index) => message(index, `body ${index}`));
    const { body, encoder } = await encode(messages);
    const range = rangeOf(encoder.chunks)!;
    const other = await encode([message(0, 'one')]);
    await expect(decodeMessages(body.subarray(0, body.length - 1), range)).rejects.toThrow(TranscriptError);
    const otherRange = { ...range, chunks: [{ ...other.encoder.chunks[0]!, count: 2 }], end: other.body.length - 1 };
    await expect(decodeMessages(other.body, otherRange)).rejects.toThrow(/its index says 2/);
    // The header's time and system bytes are not covered by the checksum, and nothing reads them.
    const meaningful = fc.integer({ min: 10, max: encoder.chunks[0]!.bytes - 1 });
    await fc.assert(
      fc.asyncProperty(meaningful, fc.integer({ min: 1, max: 255 }), async (at, change) => {
        const changed = Buffer.from(body);
        changed[at]! ^= change;
        const read = await decodeMessages(changed, range).catch((error: unknown) => error);
        // The bits that fill up the last byte before the checksum say nothing.
        if (Array.isArray(read)) expect(read).toEqual(messages);
        else expect(read).toBeInstanceOf(TranscriptError);
      }),
      { numRuns: full ? 60 : 30 },
    );
  });
});
