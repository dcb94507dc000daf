import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { detectFormat, SNIFF_BYTES } from './detect.ts';
import { all, fixture, textBytes } from './import.fixture.ts';
import { linesOf } from './lines.ts';

describe('the format of a file', () => {
  it.each([
    ['arithmetic.eval', 'inspect'],
    ['arithmetic.json.log', 'inspect'],
    ['results.jsonl', 'verifiers'],
    ['openai.jsonl', 'openai'],
  ])('of %s is %s', (name, format) => {
    expect(detectFormat('file', readFileSync(fixture(name)).subarray(0, SNIFF_BYTES))).toBe(format);
  });

  it.each([
    ['{"eventType":"rollout"}', 'palestra'],
    ['{"id":"x","rolloutName":"n","messages":[]}', 'palestra'],
    ['{"id":"e","traces":[]}', 'verifiers'],
    ['{"messages":[{"role":"user","content":"cut he', 'openai'],
    ['{\n "version": 2,\n "status": "success",\n "eval": {', 'inspect'],
    ['a,b\n1,2', null],
    ['', null],
  ])('that begins with %j is %s', (text, format) => {
    expect(detectFormat('file', Buffer.from(text))).toBe(format);
  });
});

describe('lines of a file', () => {
  it('are the same wherever the pieces are cut', async () => {
    const text = '\uFEFFé1\n\n  \nzwei\r\n三';
    const whole = [
      { number: 1, text: 'é1' },
      { number: 4, text: 'zwei\r' },
      { number: 5, text: '三' },
    ];
    const bytes = Buffer.from(text);
    for (let size = 1; size <= bytes.length; size += 1) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
      expect(await all(linesOf(textBytes(...pieces)))).toEqual(whole);
    }
  });

  it('that are too long are left out, not held', async () => {
    expect(await all(linesOf(textBytes('a\n', 'bbbb', 'bbbb', '\nc'), 4))).toEqual([
      { number: 1, text: 'a' },
      { number: 2, text: null },
      { number: 3, text: 'c' },
    ]);
  });
});
