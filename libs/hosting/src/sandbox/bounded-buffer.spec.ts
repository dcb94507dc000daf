import { expect, test } from 'vitest';
import { BoundedBuffer } from './bounded-buffer.ts';

test('keeps what fits, in order', () => {
  const kept = new BoundedBuffer(10);
  for (const text of ['ab', '', 'cdef', 'ghij']) kept.add(Buffer.from(text));
  expect([kept.bytes().toString(), kept.truncated]).toEqual(['abcdefghij', false]);
  kept.add(Buffer.from('k'));
  expect([kept.bytes().toString(), kept.truncated]).toEqual(['abcdefghij', true]);
});

test('a piece that fits in part is cut, and nothing is kept without room', () => {
  const kept = new BoundedBuffer(3);
  kept.add(Buffer.from('abcdef'));
  expect([kept.bytes().toString(), kept.truncated]).toEqual(['abc', true]);
  const none = new BoundedBuffer(0);
  none.add(Buffer.alloc(0));
  expect(none.truncated).toBe(false);
  none.add(Buffer.from('a'));
  expect([none.bytes().length, none.truncated]).toEqual([0, true]);
});

test('it copies: the piece may change later', () => {
  const kept = new BoundedBuffer(10);
  const piece = Buffer.from('ab');
  kept.add(piece);
  piece.fill('x');
  expect(kept.bytes().toString()).toBe('ab');
});

test('a million pieces of one byte need the memory of their bytes', () => {
  const kept = new BoundedBuffer(2 ** 24);
  const pieces = Array.from({ length: 256 }, (_, value) => Buffer.of(value));
  for (let count = 0; count < 2 ** 20; count += 1) kept.add(pieces[count % 256]!);
  const bytes = kept.bytes();
  expect(bytes.length).toBe(2 ** 20);
  expect(bytes.subarray(-3)).toEqual(Buffer.of(253, 254, 255));
  expect(bytes.buffer.byteLength).toBeLessThanOrEqual(2 ** 21);
  expect(kept.truncated).toBe(false);
});
