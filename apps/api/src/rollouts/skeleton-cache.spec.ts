import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { RolloutHead } from './rollout.sql.ts';
import { SkeletonCache } from './skeleton-cache.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const head = (seq: string, messages: number, lastAt = 1): RolloutHead =>
  ({ seq, messages, last_at: new Date(lastAt) }) satisfies Partial<RolloutHead> as RolloutHead;

function counted(first?: Error) {
  let reads = 0;
  const cache = new SkeletonCache(() => {
    reads += 1;
    return first && reads === 1 ? Promise.reject(first) : Promise.resolve([]);
  });
  return { cache, reads: () => reads };
}

test('reads once for concurrent requests, and again for one more message, a later event or after two seconds', async () => {
  const { cache, reads } = counted();
  await Promise.all([cache.of(head('1', 3)), cache.of(head('1', 3))]);
  await cache.of(head('1', 3));
  expect(reads()).toBe(1);
  await cache.of(head('1', 4));
  await cache.of(head('1', 4, 2));
  await cache.of(head('2', 4, 2));
  expect(reads()).toBe(4);
  await vi.advanceTimersByTimeAsync(2_001);
  await cache.of(head('1', 4, 2));
  expect(reads()).toBe(5);
});

test('repeats a failed read and keeps a bounded number of reads', async () => {
  const { cache, reads } = counted(new Error('the database is unavailable'));
  await expect(cache.of(head('1', 3))).rejects.toThrow('unavailable');
  await cache.of(head('1', 3));
  expect(reads()).toBe(2);
  for (let seq = 2; seq <= 9; seq += 1) await cache.of(head(String(seq), 3));
  await cache.of(head('9', 3));
  expect(reads()).toBe(10);
  await cache.of(head('1', 3));
  expect(reads()).toBe(11);
});
