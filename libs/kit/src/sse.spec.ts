import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutErrorText, encodeSseEvent, encodeSseHeartbeat, encodeSseResult, splitJsonForSse, SSE_PIECE_LENGTH, SseParser } from './sse.ts';
import { full } from '../../../tests/support/full.ts';
import { cpuTime } from '../../../tests/support/cpu-time.ts';

/** The characters that Python's `str.lstrip()` removes. */
const PYTHON_WHITESPACE = /^[\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/** The official client's reading of a stream: lines, left-stripped values, chunks joined and parsed at `end`. */
function readAsOfficialClient(stream: string): unknown {
  let joined = '';
  for (const block of stream.split('\r\n\r\n').filter((text) => text !== '')) {
    const lines = block.split('\r\n');
    for (const line of lines) expect(Buffer.from(line, 'utf8').toString('utf8')).toBe(line);
    const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).replace(PYTHON_WHITESPACE, ''));
    joined += data.join('\n');
  }
  return JSON.parse(joined);
}

const withText = (text: string) => JSON.stringify({ ok: true, output: { blocks: [{ text, detail: null, type: 'text' }] } });

describe('encodeSseResult', () => {
  test.each([0, 1, 4000, 4096, 4097, 8200, 20_000])('keeps %i spaces', (length) => {
    const json = withText(' '.repeat(length));
    expect(readAsOfficialClient(encodeSseResult(json))).toEqual(JSON.parse(json));
  });

  test('keeps any text, whatever lies at the borders', () => {
    const character = fc.oneof(
      fc.constantFrom(' ', '\u0085', '\u00a0', '\u2028', '\u3000', '\u001f', '😀', '"', '\\', 'é', 'x', '\n', '\t'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    );
    const run = fc.tuple(character, fc.integer({ min: 1, max: 6000 })).map(([text, count]) => text.repeat(count));
    fc.assert(
      fc.property(fc.array(run, { maxLength: 4 }), (runs) => {
        const json = withText(runs.join(''));
        expect(readAsOfficialClient(encodeSseResult(json))).toEqual(JSON.parse(json));
        for (const piece of splitJsonForSse(json)) {
          expect(piece.length).toBeLessThanOrEqual(SSE_PIECE_LENGTH);
          expect(piece).not.toMatch(PYTHON_WHITESPACE);
          expect(Buffer.from(piece, 'utf8').toString('utf8')).toBe(piece);
        }
      }),
      { numRuns: full ? 60 : 25 },
    );
  });

  test('keeps documents that are printed with indentation or with long gaps between tokens', () => {
    const value = { a: [1, 2, { b: ' '.repeat(5000) }] };
    expect(readAsOfficialClient(encodeSseResult(JSON.stringify(value, null, 2)))).toEqual(value);
    expect(readAsOfficialClient(encodeSseResult(`{"a":${' '.repeat(9000)}1,\r\n${' '.repeat(9000)}"b":"${' '.repeat(9000)}"}`))).toEqual({
      a: 1,
      b: ' '.repeat(9000),
    });
  });

  test('a short result is one end event', () => {
    expect(encodeSseResult('{"ok":true}')).toBe('event: end\r\ndata: {"ok":true}\r\n\r\n');
    expect(encodeSseResult('')).toBe('event: end\r\ndata: \r\n\r\n');
  });
});

describe('encodeSseEvent', () => {
  test('writes one data line per line', () => {
    expect(encodeSseEvent('error', 'one\ntwo\r\nthree')).toBe('event: error\r\ndata: one\r\ndata: two\r\ndata: three\r\n\r\n');
    expect(encodeSseEvent('error', '')).toBe('event: error\r\ndata: \r\n\r\n');
  });
  test('a heartbeat is a comment', () => {
    expect(encodeSseHeartbeat(new Date(0))).toBe(': ping - 1970-01-01T00:00:00.000Z\r\n\r\n');
  });
});

describe('SseParser', () => {
  const parse = (...pieces: (string | Uint8Array)[]) => {
    const parser = new SseParser();
    return pieces.flatMap((piece) => parser.push(piece));
  };

  test('removes one space only and skips comments', () => {
    expect(parse(': ping\r\n\r\nevent: chunk\r\ndata:   x\r\n\r\n')).toEqual([{ event: 'chunk', data: '  x' }]);
  });
  test('an empty data line is an event, none is not', () => {
    expect(parse('event: end\ndata: \n\n')).toEqual([{ event: 'end', data: '' }]);
    expect(parse('event: end\n\n')).toEqual([]);
  });
  test('knows all line ends', () => {
    expect(parse('data: a\rdata: b\r\rdata: c\n\n')).toEqual([
      { event: 'message', data: 'a\nb' },
      { event: 'message', data: 'c' },
    ]);
  });

  test('gives the same events however the bytes are cut', () => {
    const stream = Buffer.from(
      encodeSseEvent('task_id', 'abc') + encodeSseResult(withText('é😀 \u2028'.repeat(2000))) + encodeSseEvent('error', 'a\nb'),
    );
    const whole = parse(stream);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: stream.length }), { maxLength: 12 }), (cuts) => {
        const borders = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
        expect(parse(...borders.slice(1).map((border, index) => stream.subarray(borders[index], border)))).toEqual(whole);
      }),
      { numRuns: 50 },
    );
  });
});

test('an error is short enough for the line that a client reads, whatever it is written in', () => {
  expect(cutErrorText('boom')).toBe('boom');
  const text = `first ${'😀'.repeat(1_000_000)} last`;
  const cut = cutErrorText(text);
  expect(cut).toMatch(/^first .*\n\[1934475 characters left out\]\n.* last$/s);
  expect(cut.isWellFormed()).toBe(true);
  for (const line of encodeSseEvent('error', cut).split('\r\n')) expect(Buffer.byteLength(line)).toBeLessThan(2 ** 19);
});

test('a line of many megabytes is read in the time of its length', () => {
  const parser = new SseParser();
  const piece = Buffer.alloc(4_096, 'x');
  const began = cpuTime();
  parser.push('event: error\ndata: ');
  for (let at = 0; at < 4_096; at += 1) parser.push(piece);
  expect(parser.push('\n\n')[0]!.data).toHaveLength(4_096 * 4_096);
  expect(cpuTime() - began).toBeLessThan(2_000);
});
