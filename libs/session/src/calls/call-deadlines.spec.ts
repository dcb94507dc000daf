import type { Clock } from '@palestra/kit';
import { describe, expect, test } from 'vitest';
import { CallDeadlines } from './call-deadlines.ts';

/** A clock that is moved by hand; `timers` counts those that were ever set. */
function handClock() {
  let now = 1_000;
  const due: { at: number; run: () => void }[] = [];
  const counts = { timers: 0 };
  const clock: Clock = {
    now: () => now,
    after(delayMs, run) {
      counts.timers += 1;
      due.push({ at: now + delayMs, run });
      return () => {};
    },
    sleep: () => Promise.reject(new Error('not used')),
  };
  const move = (ms: number) => {
    now += ms;
    for (let at = due.findIndex((timer) => timer.at <= now); at >= 0; at = due.findIndex((timer) => timer.at <= now))
      due.splice(at, 1)[0]!.run();
  };
  return { clock, counts, move };
}

const never = new Promise<never>(() => {});
const tooLong = () => new Error('too long');
const settled = async (work: Promise<unknown>) => {
  const outcome = work.then(
    (value) => value,
    (error: Error) => error.message,
  );
  return Promise.race([outcome, new Promise((resolve) => setImmediate(() => resolve('waits')))]);
};

describe('the wait for a call', () => {
  test('ends with the call, with one timer for all calls', async () => {
    const { clock, counts } = handClock();
    const watch = new CallDeadlines(clock);
    const { signal } = new AbortController();
    const results = Array.from({ length: 100 }, (_, n) => watch.wait(signal, Promise.resolve(n), 50, tooLong));
    expect(await Promise.all(results)).toEqual(Array.from({ length: 100 }, (_, n) => n));
    await expect(watch.wait(signal, Promise.reject(new Error('it broke')), 50, tooLong)).rejects.toThrow('it broke');
    expect(counts.timers).toBe(1);
  });

  test('ends at its own limit when other calls ended before', async () => {
    const { clock, move } = handClock();
    const watch = new CallDeadlines(clock);
    const { signal } = new AbortController();
    await watch.wait(signal, Promise.resolve(), 50, tooLong);
    move(30);
    const [slow, patient] = [watch.wait(signal, never, 50, tooLong), watch.wait(signal, never, 500, tooLong)];
    move(49);
    expect(await settled(slow)).toBe('waits');
    move(1);
    expect(await settled(slow)).toBe('too long');
    expect(await settled(patient)).toBe('waits');
    move(450);
    expect(await settled(patient)).toBe('too long');
  });

  test('ends when the session dies, and at once when it is dead', async () => {
    const { clock } = handClock();
    const watch = new CallDeadlines(clock);
    const dies = new AbortController();
    const waits = [1, 2].map(() => watch.wait(dies.signal, never, 50, tooLong));
    dies.abort(new Error('the session died'));
    for (const wait of waits) expect(await settled(wait)).toBe('the session died');
    const after = watch.wait(dies.signal, Promise.reject(new Error('unheard')), 50, tooLong);
    expect(await settled(after)).toBe('the session died');
  });
});
