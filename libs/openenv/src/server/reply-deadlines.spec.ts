import { expect, onTestFinished, test, vi } from 'vitest';
import { ReplyDeadlines } from './reply-deadlines.ts';

test('a reply has its whole time, also when the clock of the machine is set', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const deadlines = new ReplyDeadlines(60_000);
  const expired: string[] = [];
  const add = (name: string) => deadlines.add({ expiresAt: 0, expire: () => expired.push(name) });
  add('first');
  vi.setSystemTime(Date.now() + 3_600_000);
  vi.advanceTimersByTime(30_000);
  add('second');
  vi.setSystemTime(Date.now() - 7_200_000);
  vi.advanceTimersByTime(29_000);
  expect(expired).toEqual([]);
  vi.advanceTimersByTime(2_000);
  expect(expired).toEqual(['first']);
  vi.advanceTimersByTime(30_000);
  expect(expired).toEqual(['first', 'second']);
});
