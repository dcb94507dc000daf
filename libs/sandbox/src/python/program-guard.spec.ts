import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Excess, ProgramGuard } from './program-guard.ts';

const MEBIBYTE = 1 << 20;
const limits = { cpuMs: 300, wallMs: 2_000, memoryBytes: 64 * MEBIBYTE };

// `performance` too: the guard's clock.
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A program that runs until it is ended or `stop` is called. `excess`: why it was ended, null when it was not. */
function watch(guard: ProgramGuard, used: { cpuMs: number; rssBytes: number } | null = { cpuMs: 5_000, rssBytes: 0 }) {
  let stop: () => void = () => {};
  const running = new Promise<void>((resolve) => (stop = resolve));
  const program = { excess: null as Excess | null, isClosed: false, done: Promise.resolve(), stop, used };
  const close = async () => {
    program.isClosed = true;
    stop();
  };
  program.done = guard.watch(
    { usage: () => program.used && { ...program.used }, close },
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
  const program = watch(new ProgramGuard(limits));
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
  const program = watch(new ProgramGuard(limits), used);
  await vi.advanceTimersByTimeAsync(1_900);
  expect(program.isClosed).toBe(false);
  await vi.advanceTimersByTimeAsync(200);
  await program.done;
  expect(program.excess).toBe('time');
});

test('does not count what the interpreter used before the program', async () => {
  const program = watch(new ProgramGuard(limits), { cpuMs: 60_000, rssBytes: 0 });
  await use(program, { cpuMs: 200 });
  program.stop();
  await program.done;
  expect(program).toMatchObject({ excess: null, isClosed: false });
});

test('gives concurrent programs their own limits', async () => {
  const guard = new ProgramGuard(limits);
  const [one, other] = [watch(guard), watch(guard)];
  await use(one, { cpuMs: 290, rssBytes: 60 * MEBIBYTE });
  await use(other, { cpuMs: 310, rssBytes: 60 * MEBIBYTE });
  await other.done;
  expect([one.excess, other.excess]).toEqual([null, 'time']);
  one.stop();
  await one.done;
});

test('ends the largest program if all together are too large', async () => {
  const guard = new ProgramGuard(limits, 100 * MEBIBYTE);
  const [small, large] = [watch(guard), watch(guard)];
  await use(small, { rssBytes: 45 * MEBIBYTE });
  await use(large, { rssBytes: 60 * MEBIBYTE });
  await large.done;
  expect([small.excess, large.excess]).toEqual([null, 'memory']);
  small.stop();
  await small.done;
});
