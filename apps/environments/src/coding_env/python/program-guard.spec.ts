import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Excess, PROGRAM_LIMITS, ProgramGuard } from './program-guard.ts';

const MEBIBYTE = 1 << 20;
const limits = { cpuMs: 300, wallMs: 2_000, growthBytes: 64 * MEBIBYTE };

/** A program that runs until it is ended or `stop` is called. `excess`: why it was ended, null when it was not. */
function watch(guard: ProgramGuard) {
  let stop: () => void = () => {};
  const running = new Promise<void>((resolve) => (stop = resolve));
  const program = { excess: null as Excess | null, isClosed: false, done: Promise.resolve(), stop };
  const close = async () => {
    program.isClosed = true;
    stop();
  };
  program.done = guard.watch(
    { close },
    () => running,
    (why) => (program.excess = why),
  );
  return program;
}

describe('by what the process is said to use', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function guarded() {
    const used = { cpuMs: 5_000, clockMs: 0, rssBytes: 200 * MEBIBYTE };
    /** What is used from now until the guard has looked. */
    const use = async (more: Partial<typeof used>) => {
      for (const [name, value] of Object.entries(more)) used[name as keyof typeof used] += value;
      await vi.advanceTimersByTimeAsync(100);
    };
    return { guard: new ProgramGuard(limits, () => ({ ...used })), used, use };
  }

  test.each([
    ['that uses the processor for too long', 'time', { cpuMs: 290 }, { cpuMs: 20 }],
    ['that only waits', 'time', { clockMs: 1_900 }, { clockMs: 200 }],
    ['that makes the process grow', 'memory', { rssBytes: 60 * MEBIBYTE }, { rssBytes: 8 * MEBIBYTE }],
  ] as const)('a program %s is ended for its %s, and not before', async (_what, excess, allowed, more) => {
    const { guard, use } = guarded();
    const program = watch(guard);
    await use(allowed);
    expect(program).toMatchObject({ excess: null, isClosed: false });
    await use(more);
    await program.done;
    expect(program).toMatchObject({ excess, isClosed: true });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('what the processor did before or between is not charged to a program', async () => {
    const { guard, use } = guarded();
    for (let round = 0; round < 2; round += 1) {
      await use({ cpuMs: 400 });
      const program = watch(guard);
      await use({ cpuMs: 200 });
      program.stop();
      await program.done;
      expect(program).toMatchObject({ excess: null, isClosed: false });
    }
  });

  test('programs that run side by side share what it did', async () => {
    const { guard, use } = guarded();
    const one = watch(guard);
    await use({ cpuMs: 200 });
    const other = watch(guard);
    await use({ cpuMs: 150 });
    expect([one.isClosed, other.isClosed]).toEqual([false, false]);
    await use({ cpuMs: 100 });
    await one.done;
    expect([one.excess, other.isClosed]).toEqual(['time', false]);
    await use({ cpuMs: 200 });
    await other.done;
    expect(other.excess).toBe('time');
  });

  test('each of them may make it grow', async () => {
    const { guard, use } = guarded();
    const programs = [watch(guard), watch(guard)];
    await use({ rssBytes: 120 * MEBIBYTE });
    expect(programs.map(({ isClosed }) => isClosed)).toEqual([false, false]);
    await use({ rssBytes: 20 * MEBIBYTE });
    await Promise.all(programs.map(({ done }) => done));
    expect(programs.map(({ excess }) => excess)).toEqual(['memory', 'memory']);
  });
});

/** The work goes on until the guard ends it, however long that takes on this machine. */
describe('by what the process really uses, a program is ended', () => {
  async function runToItsEnd(guard: ProgramGuard, work: () => void): Promise<Excess | null> {
    const program = watch(guard);
    while (!program.isClosed) {
      work();
      await sleep(5);
    }
    await program.done;
    return program.excess;
  }

  test('that computes', async () => {
    const guard = new ProgramGuard({ ...PROGRAM_LIMITS, cpuMs: 100, wallMs: Infinity });
    const compute = () => {
      const until = performance.now() + 20;
      while (performance.now() < until);
    };
    expect(await runToItsEnd(guard, compute)).toBe('time');
  });
  test('that takes memory', async () => {
    const guard = new ProgramGuard({ cpuMs: Infinity, wallMs: Infinity, growthBytes: limits.growthBytes });
    const kept: Buffer[] = [];
    const grow = () => {
      if (kept.length < 128) kept.push(Buffer.alloc(8 * MEBIBYTE, 1));
    };
    expect(await runToItsEnd(guard, grow)).toBe('memory');
  });
});
