import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { ANSWER_LIMITS, assertParsable, detailIn, readAnswer, textOf } from './answers.ts';

test('reads bodies within the limit, in any pieces', async () => {
  expect((await readAnswer(Readable.from([]), 10)).length).toBe(0);
  const text = 'é'.repeat(50_000);
  const bytes = Buffer.from(text);
  for (const size of [1, 7, 65_536, bytes.length]) {
    const pieces = function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    };
    expect(textOf(await readAnswer(Readable.from(pieces()), bytes.length)), `${size}`).toBe(text);
  }
});

test('stops at the limit and destroys the body', async () => {
  let made = 0;
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc((made += 1) && 1_000);
    })(),
  );
  await expect(readAnswer(endless, 10_000)).rejects.toMatchObject({ code: 'answer_too_large' });
  expect(endless.destroyed).toBe(true);
  expect(made).toBeLessThan(100);
});

test('names the limit in the error', async () => {
  const body = Readable.from([Buffer.alloc(ANSWER_LIMITS.metadata), Buffer.from('x')]);
  await expect(readAnswer(body, ANSWER_LIMITS.metadata)).rejects.toThrow('larger than 16 MiB');
});

test('refuses JSON that is too deep or too long', () => {
  expect(() => assertParsable('{"a": [1, 2]}')).not.toThrow();
  expect(() => assertParsable('['.repeat(10_000))).toThrow('nested deeper');
  expect(() => assertParsable(`[${'[],'.repeat(3_000_000)}[]]`)).toThrow('values');
});

test('removes a byte order mark', () => {
  expect(textOf(Buffer.from('\uFEFF{}'))).toBe('{}');
});

test('passes only the detail of an error on', () => {
  expect(detailIn('{"detail": "Invalid split"}')).toBe('Invalid split');
  expect(detailIn('{"detail": {"a": 1}}')).toBe('{"a":1}');
  for (const body of ['', 'aws_secret_access_key', '"detail"', '{"AccessKeyId": "x"}', '[]', 'null'])
    expect(detailIn(body), body).toBeNull();
});
