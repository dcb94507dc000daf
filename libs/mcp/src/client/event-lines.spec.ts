import { expect, test } from 'vitest';
import { EventLines } from './event-lines.ts';

function pass(bytes: Buffer, size: number): Buffer {
  const lines = new EventLines();
  const passed: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) passed.push(lines.push(bytes.subarray(at, at + size)) ?? Buffer.alloc(0));
  return Buffer.concat(passed);
}

const event = (json: string, end = '\n') => `event: message${end}data: ${json}${end}${end}`;

test.each(['\n', '\r\n', '\r'])('whole lines pass unchanged, however they were cut; they end in %j', (end) => {
  const bytes = Buffer.from(event('{"a": "é, [", "b": "\\""}', end) + event('{}', end));
  for (const size of [1, 2, 3, 1_000]) expect(pass(bytes, size).equals(bytes), `${size}`).toBe(true);
});

test('a line that has not ended waits', () => {
  const lines = new EventLines();
  expect(lines.push(Buffer.from('data: {'))).toBeNull();
  expect(lines.push(Buffer.from('}\nda'))?.toString()).toBe('data: {}\n');
});

test.each(['\n', '\r\n'])('each event is bounded, not the stream; lines end in %j', (end) => {
  const large = Buffer.from(event(JSON.stringify('x'.repeat(20_000_000)), end));
  const lines = new EventLines();
  for (let count = 0; count < 5; count += 1) lines.push(large);
  const endless = Buffer.from(`data: ${'x'.repeat(30_000_000)}${end}`);
  expect(() => {
    for (;;) lines.push(endless);
  }).toThrow('larger than 32 MiB');
});

test('an event of very many lines is refused', () => {
  expect(() => pass(Buffer.from('data:x\n'.repeat(200_000)), 65_536)).toThrow('larger than');
});

test('JSON that would freeze its parser is refused, whatever stands before it', () => {
  const deep = '['.repeat(10_000);
  for (const before of ['', ': "\n', ': "\r', `: ${']'.repeat(20_000)}\n`, 'data: "\n']) {
    expect(() => pass(Buffer.from(`${before}data: ${deep}\n\n`), 1_000), JSON.stringify(before)).toThrow('nested deeper');
  }
  expect(() => pass(Buffer.from(event(`[${'{},'.repeat(3_000_000)}{}]`)), 65_536)).toThrow('values');
  expect(() => pass(Buffer.from(event(JSON.stringify({ text: deep }))), 1_000)).not.toThrow();
});
