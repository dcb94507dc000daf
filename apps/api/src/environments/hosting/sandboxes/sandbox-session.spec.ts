import type { ExecResult, SandboxProvider } from '@palestra/hosting';
import { expect, test } from 'vitest';
import { MOST_COMMANDS, RUN_TOOL, SandboxSession } from './sandbox-session.ts';

const result: ExecResult = { exitCode: 0, output: Buffer.from('done'), timedOut: false, truncated: false };

/** A session whose commands end when `end` is called. */
function openSession() {
  const ends: ((result: ExecResult) => void)[] = [];
  const provider = { exec: () => new Promise<ExecResult>((resolve) => ends.push(resolve)) } as Partial<SandboxProvider> as SandboxProvider;
  const session = new SandboxSession({ provider: async () => provider, id: 'a', hasPolicy: false, onRemoved: async () => {} });
  const call = () => session.call({ tool: RUN_TOOL, input: { cmd: 'sleep 60' }, taskId: 'task' }, AbortSignal.timeout(10_000));
  return { call, ends, end: (at: number) => ends[at]!(result) };
}

test('more commands than the limit are refused with an error that clients repeat, until one has ended', async () => {
  const { call, ends, end } = openSession();
  const calls = Array.from({ length: MOST_COMMANDS }, call);
  await expect.poll(() => ends.length).toBe(MOST_COMMANDS);
  await expect(call()).rejects.toMatchObject({
    code: 'too_many_in_flight',
    retryable: true,
    message: expect.stringContaining('16 commands'),
  });
  end(3);
  await calls[3];
  const next = call();
  await expect.poll(() => ends.length).toBe(MOST_COMMANDS + 1);
  for (let at = 0; at < ends.length; at += 1) end(at);
  expect(await next).toMatchObject({ ok: true });
  await Promise.all(calls);
});

test('a command that could not start does not count', async () => {
  const away = { provider: () => Promise.reject(new Error('away')), id: 'b', hasPolicy: false, onRemoved: async () => {} };
  const session = new SandboxSession(away);
  const call = () => session.call({ tool: RUN_TOOL, input: { cmd: 'true' }, taskId: 'task' }, AbortSignal.timeout(10_000));
  for (let count = 0; count <= MOST_COMMANDS; count += 1) await expect(call()).rejects.toThrow('away');
});
