import { afterEach, expect, test } from 'vitest';
import { PythonConsole } from './console.ts';
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
  const ceilingBytes = 1_000 * MEBIBYTE;
  const pool = new PythonPool({ parallelism: 1, interpreters: 4, ceilingBytes });
  const consoles = Array.from({ length: 4 }, () => new PythonConsole(ending.signal, PROGRAM_LIMITS, pool));
  // Each of them may have as much, but four together take some 1 300 MiB.
  for (const console of consoles) await console.run(`${HOLD}\nimport time\ntime.sleep(0.5)`);
  await expect.poll(() => pool.guard.rssBytes, { timeout: 30_000 }).toBeLessThan(ceilingBytes);
  const left = [];
  for (const console of consoles) left.push(await console.run('print(len(held))'));
  const ended = left.filter(({ isInterrupted }) => isInterrupted);
  expect(ended.length).toBeGreaterThan(0);
  expect(ended.length).toBeLessThan(4);
  for (const { exitCode, stderr } of ended)
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('variables and files are gone')]);
  for (const { stdout } of left.filter((one) => !ended.includes(one))) expect(stdout).toBe(`${200 * MEBIBYTE}\n`);
  await pool.interpreters.close();
});

test('the time limit of a program does not count its wait for the others', async () => {
  const pool = new PythonPool({ parallelism: 1, interpreters: 3, ceilingBytes: 4_000 * MEBIBYTE });
  const limits = { ...PROGRAM_LIMITS, wallMs: 4_000 };
  const sleep = () => new PythonConsole(ending.signal, limits, pool).run('import time\ntime.sleep(2.2)');
  const results = await Promise.all([sleep(), sleep(), sleep()]);
  expect(results.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  await pool.interpreters.close();
});
