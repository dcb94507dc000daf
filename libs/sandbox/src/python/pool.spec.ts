import { afterEach, expect, test, vi } from 'vitest';
import { PythonConsole } from './console.ts';
import type { Lease } from './interpreters.ts';
import { PythonPool } from './pool.ts';
import { PROGRAM_LIMITS } from './program-guard.ts';

const MEBIBYTE = 1 << 20;
let ending = new AbortController();
afterEach(() => {
  ending.abort();
  ending = new AbortController();
});

const HOLD = 'held = bytearray(200 << 20)';

test('all interpreters of a pool have one ceiling, idle ones included', async () => {
  // Below four that hold 200 MiB (some 360 each), above one such, three new ones and a spare (some 215 each).
  const ceilingBytes = 1_330 * MEBIBYTE;
  const pool = new PythonPool({ parallelism: 1, interpreters: 4, ceilingBytes });
  const consoles = Array.from({ length: 4 }, () => new PythonConsole(ending.signal, PROGRAM_LIMITS, pool));
  // Each of them may have as much, but not all four.
  const held = [];
  for (const console of consoles) held.push(await console.run(`${HOLD}\nimport time\ntime.sleep(0.5)`));
  await expect.poll(() => pool.guard.rssBytes).toBeLessThan(ceilingBytes);
  const left = [];
  // New interpreters take memory too, so that more of the old ones may end, also while their program prints.
  for (const [at, console] of consoles.entries()) left.push([held[at]!, await console.run('print(len(held))')] as const);
  const ended = left.filter((results) => results.some(({ isInterrupted }) => isInterrupted));
  expect(ended.length).toBeGreaterThan(0);
  expect(ended.length).toBeLessThan(4);
  for (const [first, second] of ended) {
    expect(first.stderr + second.stderr).toContain('variables and files are gone');
    // 1: the name is not known in a new interpreter. 137: the program itself was ended.
    expect([1, 137]).toContain(second.exitCode);
  }
  for (const [, { stdout }] of left.filter((results) => !ended.includes(results))) expect(stdout).toBe(`${200 * MEBIBYTE}\n`);
  await pool.interpreters.close();
});

test('a program whose interpreter is being ended, before it or while it waits for the others, runs in a new one', async () => {
  const pool = new PythonPool({ parallelism: 1, interpreters: 3, ceilingBytes: 4_000 * MEBIBYTE });
  const leases = vi.spyOn(pool.interpreters, 'lease');
  const open = () => new PythonConsole(ending.signal, PROGRAM_LIMITS, pool);
  const [other, one] = [open(), open()];
  for (const console of [other, one]) await console.run('held = 1');
  /** Ends the last interpreter as the guard does, which does not wait. */
  const end = async () => void (await (leases.mock.results.at(-1)!.value as Promise<Lease>)).release();
  const renewed = { exitCode: 1, isInterrupted: true, stderr: expect.stringContaining('variables and files are gone') as string };
  const running = other.run('import time\ntime.sleep(1)');
  const waiting = one.run('print(held)');
  await end();
  expect(await running).toMatchObject({ exitCode: 0 });
  expect(await waiting).toMatchObject(renewed);
  await end();
  expect(await one.run('print(held)')).toMatchObject(renewed);
  await pool.interpreters.close();
});

test('the time limit of a program does not count its wait for the others', async () => {
  const pool = new PythonPool({ parallelism: 1, interpreters: 3, ceilingBytes: 4_000 * MEBIBYTE });
  const limits = { ...PROGRAM_LIMITS, wallMs: 6_000 };
  const sleep = () => new PythonConsole(ending.signal, limits, pool).run('import time\ntime.sleep(2.2)');
  const results = await Promise.all([sleep(), sleep(), sleep()]);
  expect(results.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  await pool.interpreters.close();
});
