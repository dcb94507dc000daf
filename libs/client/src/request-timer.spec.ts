import { expect, onTestFinished, test, vi } from 'vitest';
import { RequestTimer } from './request-timer.ts';

test.each([3_600_000, -3_600_000])('a request has its whole time, also when the clock of the machine is set by %i ms', (ms) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const timer = new RequestTimer(60_000, []);
  vi.advanceTimersByTime(50_000);
  timer.touch();
  vi.setSystemTime(Date.now() + ms);
  vi.advanceTimersByTime(59_000);
  expect(timer.isLate).toBe(false);
  vi.advanceTimersByTime(2_000);
  expect(timer.isLate).toBe(true);
});
