import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf, start } from './contract.ts';

/** `palestra.inspect`, evaluated by the real Inspect. */
describe('a task of Inspect', () => {
  interface Evaluated {
    status: string;
    samples: { id: string; epoch: number; score: number | null; error: string | null; roles: string[] }[];
    metrics: Record<string, number | null>;
  }
  const program = { python: 'inspect', program: 'inspect_task.py' };
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra);
  });
  afterAll(() => fragile?.close());

  test('plays every sample in every epoch, and its rollouts are those that it scored', async () => {
    const run = 'inspect-eval';
    const { status, samples, metrics } = await drive<Evaluated>(palestra, { ...program, args: ['palestra/whodunit', 'train', '2'], run });
    expect(status).toBe('success');
    expect(samples.map(({ error, roles }) => [error, roles.slice(-4)])).toEqual(
      Array(4).fill([null, ['assistant', 'tool', 'assistant', 'tool']]),
    );
    const scores = samples.map(({ score }) => score!);
    expect(metrics['mean']).toBeCloseTo(scores.reduce((sum, score) => sum + score, 0) / scores.length, 5);
    const rows = await assertRun(palestra, run, { rewards: scores, samples: [0, 1, 0, 1], groups: 2, turns: 2 });
    expect(rows.map(({ phase, stop }) => [phase, stop])).toEqual(Array(4).fill(['eval', 'finished']));
  });

  test('evaluates the file of the example', async () => {
    const file = path.resolve(import.meta.dirname, '../../../examples/inspect/whodunit.py');
    const { status, samples } = await drive<Evaluated>(palestra, { ...program, args: [file, '-', '1'], run: 'unused' });
    expect(status).toBe('success');
    const rows = await assertRun(palestra, 'whodunit-baseline', { rewards: samples.map(({ score }) => score), groups: 2, turns: 2 });
    expect(rows.map(({ phase }) => phase)).toEqual(['eval', 'eval']);
  });

  test('a server that disappears is an error of the sample, not a score', async () => {
    const run = 'inspect-fragile';
    const { samples } = await drive<Evaluated>(palestra, { ...program, args: [fragile.environment, 'train', '1'], run });
    expect(samples.map(({ score }) => score)).toEqual([1.25, null]);
    expect(samples.map(({ error }) => error)).toEqual([null, expect.stringMatching(/session_lost|unreachable/)]);
    await assertRun(palestra, run, { rewards: [1.25, null], failures: [null, 'infrastructure'], turns: 2 });
  });

  test('a model that cannot be reached leaves no session and no score', async () => {
    const run = 'inspect-no-model';
    const { samples } = await drive<Evaluated>(palestra, {
      ...program,
      args: ['palestra/whodunit', 'train', '1', 'http://127.0.0.1:9/v1'],
      run,
    });
    expect(samples.map(({ score, error }) => [score, error])).toEqual(Array(2).fill([null, expect.stringContaining('chat_failed')]));
    const rows = await rolloutsOf(palestra, run, 2);
    expect(rows.map((row) => [row.reward, row.failure_class])).toEqual(Array(2).fill([null, 'infrastructure']));
    await assertNoSession(palestra);
  });

  // A turn adds two messages, so one of the limits falls between a reply and its result.
  test.each([2, 3])('a limit of %i messages ends the episode, which keeps its score', async (message_limit) => {
    const run = `inspect-limit-${message_limit}`;
    const limits = JSON.stringify({ message_limit });
    const args = ['palestra/whodunit', 'train', '1', '', limits];
    const { status, samples } = await drive<Evaluated>(palestra, { ...program, args, run });
    expect(status).toBe('success');
    expect(samples.map(({ error, score }) => [error, typeof score])).toEqual(Array(2).fill([null, 'number']));
    for (const { roles } of samples) expect(roles.length).toBeLessThanOrEqual(message_limit);
  });

  test('a limit of time leaves the sample without a score, and is no error', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`;
    const args = ['palestra/whodunit', 'train', '1', endpoint, JSON.stringify({ time_limit: 2 })];
    const { status, samples, metrics } = await drive<Evaluated>(palestra, { ...program, args, run: 'inspect-time' }).finally(() => {
      silent.closeAllConnections();
      silent.close();
    });
    expect([status, metrics['mean']]).toEqual(['success', null]);
    expect(samples.map(({ score, error }) => [score, error])).toEqual(Array(2).fill([null, null]));
    await assertNoSession(palestra);
  });

  test('an unsupported version is named', async () => {
    const { output } = await start(palestra, { python: 'v167', program: 'inspect_task.py', args: ['a/b', 'train', '1'], run: 'none' });
    expect(output).toContain('needs inspect-ai >=0.3.285,<0.4, which is not installed');
  });
});
