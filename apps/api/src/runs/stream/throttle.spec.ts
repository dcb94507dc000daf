import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Throttle } from './throttle.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('runs at once, then at most once per interval, and after the last request', async () => {
  const times: number[] = [];
  const started = Date.now();
  const throttle = new Throttle(async () => void times.push(Date.now() - started), 1_000);
  for (let at = 0; at < 35; at += 1) {
    throttle.request();
    await vi.advanceTimersByTimeAsync(100);
  }
  await vi.advanceTimersByTimeAsync(5_000);
  expect(times).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
  throttle.end();
  throttle.request();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(times).toHaveLength(5);
});

test('never runs twice at the same time, and continues after a failure', async () => {
  let [running, most, done] = [0, 0, 0];
  const throttle = new Throttle(async () => {
    most = Math.max(most, (running += 1));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    running -= 1;
    done += 1;
    if (done === 1) throw new Error('away');
  }, 1_000);
  for (let at = 0; at < 60; at += 1) {
    throttle.request();
    await vi.advanceTimersByTimeAsync(100);
  }
  await vi.advanceTimersByTimeAsync(10_000);
  expect([most, done]).toEqual([1, 4]);
});
