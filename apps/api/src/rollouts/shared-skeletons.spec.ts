import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { RolloutHead } from './rollout.sql.ts';
import { SharedSkeletons } from './shared-skeletons.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const head = (seq: string, messages: number, lastAt = 1): RolloutHead =>
  ({ seq, messages, last_at: new Date(lastAt) }) satisfies Partial<RolloutHead> as RolloutHead;

function counted(first?: Error) {
  let reads = 0;
  const shared = new SharedSkeletons(() => {
    reads += 1;
    return first && reads === 1 ? Promise.reject(first) : Promise.resolve([]);
  });
  return { shared, reads: () => reads };
}

test('header and outline of one moment are one read; a message more, a later event and a later moment are another', async () => {
  const { shared, reads } = counted();
  await Promise.all([shared.of(head('1', 3)), shared.of(head('1', 3))]);
  await shared.of(head('1', 3));
  expect(reads()).toBe(1);
  await shared.of(head('1', 4));
  await shared.of(head('1', 4, 2));
  await shared.of(head('2', 4, 2));
  expect(reads()).toBe(4);
  await vi.advanceTimersByTimeAsync(2_000);
  await shared.of(head('1', 4, 2));
  expect(reads()).toBe(5);
});

test('a read that failed is made again, and only so many are held', async () => {
  const { shared, reads } = counted(new Error('the database went away'));
  await expect(shared.of(head('1', 3))).rejects.toThrow('went away');
  await shared.of(head('1', 3));
  expect(reads()).toBe(2);
  for (let seq = 2; seq <= 9; seq += 1) await shared.of(head(String(seq), 3));
  await shared.of(head('9', 3));
  expect(reads()).toBe(10);
  await shared.of(head('1', 3));
  expect(reads()).toBe(11);
});
