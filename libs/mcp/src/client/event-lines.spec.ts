import { expect, test } from 'vitest';
import { EventLines } from './event-lines.ts';

function pass(bytes: Buffer, size: number): Buffer {
  const lines = new EventLines();
  const passed: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) passed.push(lines.push(bytes.subarray(at, at + size)) ?? Buffer.alloc(0));
  return Buffer.concat(passed);
}

const event = (json: string, end = '\n') => `event: message${end}data: ${json}${end}${end}`;

test.each(['\n', '\r\n', '\r'])('passes whole lines unchanged for any split of the input; line end %j', (end) => {
  const bytes = Buffer.from(event('{"a": "é, [", "b": "\\""}', end) + event('{}', end));
  for (const size of [1, 2, 3, 1_000]) expect(pass(bytes, size).equals(bytes), `${size}`).toBe(true);
});

test('holds an incomplete line', () => {
  const lines = new EventLines();
  expect(lines.push(Buffer.from('data: {'))).toBeNull();
  expect(lines.push(Buffer.from('}\nda'))?.toString()).toBe('data: {}\n');
});

test.each(['\n', '\r\n'])('limits each event, not the stream; line end %j', (end) => {
  const large = Buffer.from(event(JSON.stringify('x'.repeat(20_000_000)), end));
  const lines = new EventLines();
  for (let count = 0; count < 5; count += 1) lines.push(large);
  const endless = Buffer.from(`data: ${'x'.repeat(30_000_000)}${end}`);
  expect(() => {
    for (;;) lines.push(endless);
  }).toThrow('larger than 32 MiB');
});

test('refuses an event of too many lines', () => {
  expect(() => pass(Buffer.from('data:x\n'.repeat(200_000)), 65_536)).toThrow('larger than');
});

test('refuses JSON that is too deep or too long, after any prefix', () => {
  const deep = '['.repeat(10_000);
  for (const before of ['', ': "\n', ': "\r', `: ${']'.repeat(20_000)}\n`, 'data: "\n']) {
    expect(() => pass(Buffer.from(`${before}data: ${deep}\n\n`), 1_000), JSON.stringify(before)).toThrow('nested deeper');
  }
  expect(() => pass(Buffer.from(event(`[${'{},'.repeat(3_000_000)}{}]`)), 65_536)).toThrow('values');
  expect(() => pass(Buffer.from(event(JSON.stringify({ text: deep }))), 1_000)).not.toThrow();
});
