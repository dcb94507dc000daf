import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, failureOf, hostFragile, rolloutsOf, start } from './contract.ts';

const root = path.resolve(import.meta.dirname, '../../..');

/** The taskset plugin, played by the real vf-eval and vf-validate of verifiers 0.4. */
describe('the taskset of verifiers', () => {
  interface Trace {
    reward: number;
    ok: boolean;
    stop: string;
    errors: string[];
    key: string;
    roles: string[];
  }
  const program = { python: 'verifiers', program: 'verifiers_plugin.py' };
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra);
  });
  afterAll(() => fragile?.close());

  test('vf-eval plays every task, and the rollouts are its traces', async () => {
    const run = 'vf-eval';
    const traces = await drive<Trace[]>(palestra, { ...program, args: ['eval', 'palestra/whodunit', '2'], run });
    expect(traces.map(({ ok, stop, errors }) => [ok, stop, errors])).toEqual(Array(4).fill([true, 'finished', []]));
    for (const { roles } of traces) expect(roles).toEqual(expect.arrayContaining(['user', 'assistant', 'tool']));
    const rows = await assertRun(palestra, run, { rewards: traces.map(({ reward }) => reward), groups: 2, turns: 2 });
    expect(rows.map(({ stop, phase }) => [stop, phase])).toEqual(Array(4).fill(['finished', 'eval']));
    expect([...new Set(traces.map(({ key }) => key))]).toHaveLength(2);
    const { keys, harness } = await drive<{ keys: string[]; harness: string }>(palestra, {
      ...program,
      args: ['load', 'palestra/whodunit'],
      run,
    });
    expect(keys.slice(0, 2).toSorted()).toEqual([...new Set(traces.map(({ key }) => key))].toSorted());
    expect(keys).toHaveLength(3);
    expect(harness).toBe('palestra-verifiers');
  });

  test('a server that disappears is an error of the trace, not a reward', async () => {
    const run = 'vf-fragile';
    const traces = await drive<Trace[]>(palestra, { ...program, args: ['eval', fragile.environment, '1'], run });
    expect(traces.map(({ ok, reward, errors }) => [ok, reward, errors])).toEqual([
      [true, 1.25, []],
      [false, 0, ['SandboxError']],
    ]);
    await assertRun(palestra, run, { rewards: [1.25, null], failures: [null, 'infrastructure'], turns: 2 });
  });

  test('vf-validate opens each task and leaves no session', async () => {
    const rows = await drive<{ mode: string; reason: string }[]>(palestra, {
      ...program,
      args: ['validate', 'palestra/whodunit'],
      run: 'vf-validate',
    });
    expect(rows).toEqual([...Array(2).fill({ mode: 'setup', reason: 'valid' }), ...Array(2).fill({ mode: 'noop', reason: 'valid' })]);
    await assertNoSession(palestra);
  });

  test('a policy that cannot be reached leaves no session, and its rollouts have no reward', async () => {
    const run = 'vf-no-policy';
    const traces = await drive<Trace[]>(palestra, { ...program, args: ['eval', 'palestra/whodunit', '1', 'http://127.0.0.1:9/v1'], run });
    expect(traces.map(({ ok }) => ok)).toEqual([false, false]);
    const rows = await rolloutsOf(palestra, run, 2);
    expect(rows.map((row) => [row.reward, failureOf(row)])).toEqual(Array(2).fill([null, 'infrastructure']));
    await assertNoSession(palestra);
  });

  test.each(['examples/prime-rl/train.toml', 'docs/trainers/verifiers.md'])('verifiers reads the environment of %s', async (file) => {
    const found = await drive<object[]>(palestra, { ...program, args: ['config', path.join(root, file)], run: 'none' });
    expect(found).toEqual([expect.objectContaining({ class: 'PalestraConfig', environment: 'palestra/whodunit', split: 'train' })]);
  });

  test('an unsupported version is named', async () => {
    const { output } = await start(palestra, { python: 'v167', program: 'verifiers_plugin.py', args: ['load', 'a/b'], run: 'none' });
    expect(output).toContain('needs verifiers >=0.4.0,<0.5, which is not installed');
  });
});
