import { expect, test } from 'vitest';
import { UntrustedWork, LANES } from './untrusted-work.ts';

const MIB = 1024 * 1024;
const limits = { ...LANES.check, processes: 2, deadlineMs: 100_000, memoryBytes: 160 * MIB, waiting: { owner: 1, all: 2 } };
const module = new URL('./work.fixture.mjs', import.meta.url);
const task = (does: string, owner = 'a') => ({ module, input: { does }, owner, lane: 'check' as const });
const work = (changes = {}) => new UntrustedWork({ check: { ...limits, ...changes }, file: limits });

test('runs in another process, which has no environment', async () => {
  const answer = await work().run<{ env: object; pid: number }>(task('answer'));
  expect(answer.pid).not.toBe(process.pid);
  expect(Object.keys(answer.env).filter((name) => !name.startsWith('NODE_CHANNEL'))).toEqual([]);
});

test('work that never ends is stopped at the deadline', async () => {
  await expect(work({ deadlineMs: 2_000 }).run(task('loop'))).rejects.toMatchObject({ code: 'too_expensive' });
});

test.skipIf(process.platform !== 'linux').each(['heap', 'buffers'])('work with too much memory in %s is stopped', async (does) => {
  await expect(work().run(task(does))).rejects.toMatchObject({
    code: 'too_expensive',
    detail: expect.stringContaining('memory') as string,
  });
});

test('an error of the work rejects', async () => {
  await expect(work().run(task('fail'))).rejects.toThrow('broken');
});

test('an organisation runs one task at a time, few tasks wait, and another organisation does not wait for them', async () => {
  const untrusted = work();
  const endless = untrusted.run(task('loop', 'a'));
  endless.catch(() => {});
  const waiting = untrusted.run(task('answer', 'a'));
  waiting.catch(() => {});
  await expect(untrusted.run(task('answer', 'a'))).rejects.toMatchObject({ code: 'capacity_exhausted' });
  expect(await untrusted.run(task('answer', 'b'))).toMatchObject({ env: {} });
  untrusted.onApplicationShutdown();
  await expect(waiting).rejects.toMatchObject({ code: 'shutting_down' });
  await expect(endless).rejects.toThrow();
});
