import { expect, it } from 'vitest';
import { sharedMegabytes } from './embedded-postgres.ts';

const GB = 2 ** 30;

it.each([
  [1 * GB, 128],
  [4 * GB, 256],
  [8 * GB, 512],
  [24 * GB, 1_024],
  // Node reports this on a machine without a limit.
  [2 ** 64, 1_024],
])('with %d bytes of memory the page cache has %d MB', (memory, megabytes) => {
  expect(sharedMegabytes(memory)).toBe(megabytes);
});
