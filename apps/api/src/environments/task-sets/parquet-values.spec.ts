import { stringifyJson } from '@palestra/protocol';
import type { SchemaElement } from 'hyparquet';
import { expect, test } from 'vitest';
import { decimalOf, parsers } from './parquet-values.ts';

const element = (scale: number): SchemaElement => ({ name: 'd', type: 'INT64', converted_type: 'DECIMAL', precision: 18, scale });

test.each([
  [435, 2, '4.35'],
  [-1n, 2, '-0.01'],
  [12_345_678_901_234_567_890n, 2, '123456789012345678.9'],
  [0, 3, '0.0'],
  [700n, 0, '700'],
  [new Uint8Array([0xff, 0x38]), 1, '-20.0'],
  [new Uint8Array([0x01, 0xb3]), 2, '4.35'],
  [new Uint8Array([]), 0, '0'],
])('the decimal %s with %i digits behind the point is %s', (stored, scale, text) => {
  expect(stringifyJson(decimalOf(stored, element(scale)))).toBe(text);
});

test('other values than decimals are not converted', () => {
  expect(decimalOf(1, { name: 'i', type: 'INT32' })).toBeNull();
  expect(decimalOf(4.35, { ...element(2), type: 'BYTE_ARRAY' })).toBeNull();
  expect(decimalOf(1, undefined)).toBeNull();
});

test('days have no time, and times keep all digits', () => {
  expect(parsers.dateFromDays(19_782)).toBe('2024-02-29');
  expect(parsers.dateFromDays(-1)).toBe('1969-12-31');
  expect(parsers.timestampFromMicroseconds(1_700_000_000_123_000n)).toBe('2023-11-14T22:13:20.123Z');
  expect(parsers.timestampFromMicroseconds(-5n)).toBe('1969-12-31T23:59:59.999995Z');
  expect(parsers.timestampFromNanoseconds(1_700_000_000_123_456_789n)).toBe('2023-11-14T22:13:20.123456789Z');
});
