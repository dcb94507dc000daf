import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type Excess, PROGRAM_LIMITS, ProgramGuard } from './program-guard.ts';

const MEBIBYTE = 1 << 20;

/** Work that goes on until it is ended, or has nothing more to do. */
async function watch(guard: ProgramGuard, work: () => void | Promise<void>, rounds = 100): Promise<Excess | null> {
  const ended = new AbortController();
  let excess: Excess | null = null;
  const run = async () => {
    for (let round = 0; round < rounds && !ended.signal.aborted; round += 1) {
      await work();
      await sleep(5);
    }
  };
  await guard.watch({ close: async () => ended.abort() }, run, (why) => (excess = why));
  return excess;
}
function compute(ms: number): void {
  const until = process.cpuUsage().user + ms * 1000;
  while (process.cpuUsage().user < until);
}

describe('a program is ended', () => {
  test('that makes the process grow', async () => {
    const guard = new ProgramGuard({ ...PROGRAM_LIMITS, growthBytes: 64 * MEBIBYTE });
    const kept: Buffer[] = [];
    const grow = () => void kept.push(Buffer.alloc(8 * MEBIBYTE, 1));
    expect(await watch(guard, grow, 40)).toBe('memory');
    expect(kept.length).toBeLessThan(40);
  });
  test('that uses the processor for too long', async () => {
    const guard = new ProgramGuard({ ...PROGRAM_LIMITS, cpuMs: 100 });
    expect(await watch(guard, () => compute(20))).toBe('time');
  });
  test('that only waits, later', async () => {
    const guard = new ProgramGuard({ ...PROGRAM_LIMITS, cpuMs: 60_000, wallMs: 200 });
    expect(await watch(guard, () => sleep(20))).toBe('time');
  });
});

test('what the processor did before is not charged to a program', { timeout: 30_000 }, async () => {
  const guard = new ProgramGuard({ ...PROGRAM_LIMITS, cpuMs: 300 });
  compute(400);
  expect(await watch(guard, () => compute(1), 3)).toBeNull();
  compute(400);
  expect(await watch(guard, () => compute(1), 3)).toBeNull();
});
