import type { Clock } from '@palestra/kit';
import { expect, test } from 'vitest';
import { LivenessMonitor } from './liveness-monitor.ts';

const SILENCE_MS = 8_000;
/** A monitor looks eight times within the limit. */
const LOOK_MS = 1_000;

/** A request that is never answered, by a server that answers no probe, and a clock that is moved by hand. */
function waitingRequest() {
  let [passed, set] = [0, 1_000_000];
  let due: { at: number; run: () => void }[] = [];
  const clock: Clock = {
    now: () => passed + set,
    after(delayMs, run) {
      due.push({ at: passed + delayMs, run });
      return () => {};
    },
    sleep: () => Promise.reject(new Error('not used')),
  };
  const monitor = new LivenessMonitor({
    clock,
    silenceMs: () => SILENCE_MS,
    probe: () => Promise.reject(new Error('no answer')),
    silent: () => new Error('silent'),
  });
  const request = { state: 'waits' };
  const never = (signal: AbortSignal) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
  void monitor.watch(new AbortController().signal, never).catch((error: Error) => (request.state = error.message));
  /** Time passes, and only then timers run. */
  const pass = async (ms: number) => {
    passed += ms;
    const now = due.filter(({ at }) => at <= passed);
    due = due.filter(({ at }) => at > passed);
    for (const { run } of now) run();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const looks = async (count: number) => {
    for (let look = 0; look < count; look += 1) await pass(LOOK_MS);
    return request.state;
  };
  return { pass, looks, setClock: (ms: number) => (set += ms) };
}

test('a server that is silent for the limit is given up', async () => {
  const { looks } = waitingRequest();
  expect(await looks(7)).toBe('waits');
  expect(await looks(1)).toBe('silent');
});

test('the time for which this process was paused is no silence', async () => {
  const { looks, pass } = waitingRequest();
  expect(await looks(3)).toBe('waits');
  await pass(60_000);
  expect(await looks(3)).toBe('waits');
  expect(await looks(1)).toBe('silent');
});

test.each([3_600_000, -3_600_000])('a clock that is set by %i ms neither ends a request nor keeps it', async (ms) => {
  const { looks, setClock } = waitingRequest();
  expect(await looks(3)).toBe('waits');
  setClock(ms);
  expect(await looks(4)).toBe('waits');
  expect(await looks(5)).toBe('silent');
});
