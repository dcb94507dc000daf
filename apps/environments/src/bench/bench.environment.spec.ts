import { EnvironmentHost } from '@palestra/environment-kit';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { bench } from './bench.environment.ts';

const host = new EnvironmentHost([bench]);
afterAll(() => host.close());

const open = (sid: string) => host.create({ sid, env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} });
const seen = async (sid: string) =>
  JSON.parse((await host.prompt(sid)).map((block) => (block.type === 'text' ? block.text : '')).join('')) as unknown;
const observe = async (sid: string, action: Record<string, unknown>) => {
  const { output } = JSON.parse((await host.call(sid, 'step', action)).text) as { output: { blocks: [{ text: string }] } };
  return JSON.parse(output.blocks[0].text) as Record<string, unknown>;
};

test.each([-1, 601, 'x'])('does not wait for %j', async (seconds) => {
  await open(`bad-${seconds}`);
  expect(await host.call(`bad-${seconds}`, 'step', { wait_seconds: seconds })).toMatchObject({ ok: false, reason: 'input_validation' });
});

test('waits for the requested time and counts steps', async () => {
  await open('a');
  const zero = { waited_seconds: 0, pid: process.pid, session_hash: expect.stringMatching(/^[0-9a-f]{16}$/) as string, step_count: 0 };
  expect(await seen('a')).toMatchObject(zero);
  const before = performance.now();
  expect(await observe('a', { wait_seconds: 0.05 })).toMatchObject({ waited_seconds: 0.05, step_count: 1 });
  expect(performance.now() - before).toBeGreaterThanOrEqual(49);
  expect(await observe('a', {})).toMatchObject({ waited_seconds: 0, step_count: 2 });
});

test('aborts a wait when its session ends', async () => {
  await open('b');
  const waiting = host.call('b', 'step', { wait_seconds: 600 });
  const ended = sleep(20).then(() => host.delete('b'));
  await Promise.all([expect(waiting).rejects.toThrow('The operation was aborted'), ended]);
});
