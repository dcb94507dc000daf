import { expect, test } from 'vitest';
import { CRASH_WINDOW_MS } from './decide.ts';
import { FailureTimes } from './failure-times.ts';

test('an instance that cannot be removed failed when it was first seen, and counts for ten minutes', () => {
  const failures = new FailureTimes();
  const stuck = { id: 'stuck', version_id: 'v', created_at: 0, ready_at: null, ended_at: null };
  const removed = { ...stuck, id: 'removed', ended_at: 500 };
  const times = (now: number, crashes = [stuck, removed]) => failures.of(crashes, now).map(({ ended_at: endedAt }) => endedAt);
  expect(times(1_000)).toEqual([1_000, 500]);
  expect(times(61_000)).toEqual([1_000, 500]);
  expect(times(1_001 + CRASH_WINDOW_MS, [stuck])).toEqual([]);
  expect(times(2_000, [])).toEqual([]);
});
