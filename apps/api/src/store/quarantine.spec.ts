import { afterEach, describe, expect, it, vi } from 'vitest';
import { createLogger } from '../platform/telemetry/logger.ts';
import { Metrics } from '../platform/telemetry/metrics.ts';
import { runAllStages, Quarantine } from './quarantine.ts';

it('later stages run after a failure, and the first error is thrown', async () => {
  const ran: number[] = [];
  const stage = (number: number, more: boolean) => async () => (ran.push(number), more);
  expect(await runAllStages(stage(1, false), stage(2, false))).toBe(false);
  expect(await runAllStages(stage(1, true), stage(2, false))).toBe(true);
  const failing = () => Promise.reject(new Error('first'));
  await expect(runAllStages(stage(3, true), failing, stage(4, false), () => Promise.reject(new Error('second')))).rejects.toThrow('first');
  expect(ran).toEqual([1, 2, 1, 2, 3, 4]);
});

describe('a quarantined item', () => {
  afterEach(() => void vi.useRealTimers());

  it('returns after its time, by kind', () => {
    vi.useFakeTimers();
    const quarantine = new Quarantine(new Metrics(), createLogger('silent'));
    quarantine.add('rollout', '7', new Error('x'));
    quarantine.add('step', '1 1 7', new Error('x'));
    expect([quarantine.members('rollout'), quarantine.members('run'), quarantine.members('step')]).toEqual([['7'], [], ['1 1 7']]);
    vi.advanceTimersByTime(11 * 60_000);
    expect([quarantine.members('rollout'), quarantine.members('step')]).toEqual([[], []]);
  });

  it('is tried again after a longer time each time that it fails, and forgotten when it does not', () => {
    vi.useFakeTimers();
    const quarantine = new Quarantine(new Metrics(), createLogger('silent'));
    const minutes = () => {
      let passed = 0;
      for (; quarantine.members('search').length > 0; passed += 1) vi.advanceTimersByTime(60_000);
      return passed;
    };
    const delays = [1, 2, 4, 8, 10, 10].map(() => (quarantine.add('search', '7', new Error('x')), minutes()));
    expect(delays).toEqual([1, 2, 4, 8, 10, 10]);
    vi.advanceTimersByTime(10 * 60_000);
    expect(quarantine.members('search')).toEqual([]);
    quarantine.add('search', '7', new Error('x'));
    expect(minutes()).toBe(1);
  });

  it('throws its error when the quarantine is full', () => {
    const quarantine = new Quarantine(new Metrics(), createLogger('silent'));
    for (let seq = 0; seq < 1_000; seq += 1) quarantine.add('rollout', String(seq), new Error('x'));
    expect(() => quarantine.add('rollout', 'one more', new Error('of too many'))).toThrow('of too many');
  });
});
