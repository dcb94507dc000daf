import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Excess, ProgramGuard, type ProgramLimits } from './program-guard.ts';

const MEBIBYTE = 1 << 20;
const limits: ProgramLimits = { cpuMs: 300, wallMs: 2_000, memoryBytes: 64 * MEBIBYTE };
const CEILING = 1_000 * MEBIBYTE;

// Only what the guard uses: interpreters of earlier files of this worker have other timers.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** A program that runs until it is ended or `stop` is called. `excess`: why it was ended, null when it was not. */
function watch(guard: ProgramGuard, used: { cpuMs: number; rssBytes: number } | null = { cpuMs: 5_000, rssBytes: 0 }) {
  let stop: () => void = () => {};
  const running = new Promise<void>((resolve) => (stop = resolve));
  const program = { excess: null as Excess | null, isClosed: false, done: Promise.resolve(), stop, used };
  const close = async () => {
    program.isClosed = true;
    guard.forget(interpreter);
    stop();
  };
  const interpreter = { usage: () => program.used && { ...program.used }, close };
  guard.add(interpreter);
  program.done = guard.watch(
    interpreter,
    limits,
    () => running,
    (why) => (program.excess = why),
  );
  return program;
}
type Program = ReturnType<typeof watch>;

/** What the program's process uses from now until the guard has looked. */
async function use(program: Program, more: { cpuMs?: number; rssBytes?: number }) {
  for (const [name, value] of Object.entries(more)) program.used![name as 'cpuMs' | 'rssBytes'] += value;
  await vi.advanceTimersByTimeAsync(100);
}

test.each([
  ['that uses the processor for too long', 'time', { cpuMs: 290 }, { cpuMs: 20 }],
  ['whose process is too large', 'memory', { rssBytes: 60 * MEBIBYTE }, { rssBytes: 8 * MEBIBYTE }],
] as const)('a program %s is ended for its %s, and not before', async (_what, excess, allowed, more) => {
  const program = watch(new ProgramGuard(CEILING));
  await use(program, allowed);
  expect(program).toMatchObject({ excess: null, isClosed: false });
  await use(program, more);
  await program.done;
  expect(program).toMatchObject({ excess, isClosed: true });
  expect(vi.getTimerCount()).toBe(0);
});

test.each([
  ['that only waits', { cpuMs: 0, rssBytes: 0 }],
  ['that cannot be measured', null],
])('a program %s is ended by the clock', async (_what, used) => {
  const program = watch(new ProgramGuard(CEILING), used);
  await vi.advanceTimersByTimeAsync(1_900);
  expect(program.isClosed).toBe(false);
  await vi.advanceTimersByTimeAsync(200);
  await program.done;
  expect(program.excess).toBe('time');
});

test('does not count what the interpreter used before the program', async () => {
  const program = watch(new ProgramGuard(CEILING), { cpuMs: 60_000, rssBytes: 0 });
  await use(program, { cpuMs: 200 });
  program.stop();
  await program.done;
  expect(program).toMatchObject({ excess: null, isClosed: false });
});

test('gives concurrent programs their own limits', async () => {
  const guard = new ProgramGuard(CEILING);
  const [one, other] = [watch(guard), watch(guard)];
  await use(one, { cpuMs: 290, rssBytes: 60 * MEBIBYTE });
  await use(other, { cpuMs: 310, rssBytes: 60 * MEBIBYTE });
  await other.done;
  expect([one.excess, other.excess]).toEqual([null, 'time']);
  one.stop();
  await one.done;
});

test('ends the largest program if all together are too large', async () => {
  const guard = new ProgramGuard(100 * MEBIBYTE);
  const [small, large] = [watch(guard), watch(guard)];
  await use(small, { rssBytes: 45 * MEBIBYTE });
  await use(large, { rssBytes: 60 * MEBIBYTE });
  await large.done;
  expect([small.excess, large.excess]).toEqual([null, 'ceiling']);
  small.stop();
  await small.done;
});

test('counts interpreters between programs: the largest pays, running or not', async () => {
  const guard = new ProgramGuard(100 * MEBIBYTE);
  const [idle, running] = [watch(guard), watch(guard)];
  await use(idle, { rssBytes: 60 * MEBIBYTE });
  idle.stop();
  await idle.done;
  await use(running, { rssBytes: 30 * MEBIBYTE });
  expect([idle.isClosed, guard.rssBytes]).toEqual([false, 90 * MEBIBYTE]);
  await use(running, { rssBytes: 20 * MEBIBYTE });
  expect([idle.isClosed, running.isClosed, guard.rssBytes]).toEqual([true, false, 50 * MEBIBYTE]);
});

test.each([
  ['computes', { cpuMs: 6_000 }, 1_000],
  ['grows', { rssBytes: 700 * MEBIBYTE }, 1_000],
  ['does nothing for 15 minutes', {}, 901_000],
] as const)('ends an interpreter that %s between programs', async (_what, more, afterMs) => {
  const program = watch(new ProgramGuard(CEILING));
  program.stop();
  await program.done;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(program.isClosed).toBe(false);
  await use(program, more);
  await vi.advanceTimersByTimeAsync(afterMs);
  expect(program).toMatchObject({ isClosed: true, excess: null });
  expect(vi.getTimerCount()).toBe(0);
});
