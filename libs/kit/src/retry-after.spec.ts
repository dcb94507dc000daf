import { expect, test } from 'vitest';
import { retryAfterMs } from './retry-after.ts';

const NOW = Date.UTC(1994, 10, 6, 8, 49, 37);

test.each([
  ['120', 120_000],
  ['0', 0],
  [' 3 ', 3_000],
  ['9'.repeat(400), Infinity],
  ['Sun, 06 Nov 1994 08:51:37 GMT', 120_000],
  ['Sunday, 06-Nov-94 08:51:37 GMT', 120_000],
  ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
  ['-1', null],
  ['1.5', null],
  ['soon', null],
  ['1994', 1_994_000],
  ['2026-11-27T04:10:00Z', null],
  ['Sun, 99 Nov 1994 08:51:37 GMT', null],
  ['', null],
  [null, null],
  [undefined, null],
])('%j waits %j ms', (header, expected) => {
  expect(retryAfterMs(header, NOW)).toBe(expected);
});
