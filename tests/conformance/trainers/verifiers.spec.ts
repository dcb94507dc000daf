import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf, start } from './contract.ts';

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

  test('vf-eval plays samples of a task, and the rollouts are its traces', async () => {
    const run = 'vf-eval';
    const traces = await drive<Trace[]>(palestra, { ...program, args: ['eval', 'palestra/whodunit', '1', '2'], run });
    expect(traces.map(({ ok, stop, errors }) => [ok, stop, errors])).toEqual(Array(2).fill([true, 'finished', []]));
    for (const { roles } of traces) expect(roles).toEqual(expect.arrayContaining(['user', 'assistant', 'tool']));
    const rows = await assertRun(palestra, run, { rewards: traces.map(({ reward }) => reward), groups: 1, turns: 2 });
    expect(rows.map(({ stop, phase }) => [stop, phase])).toEqual(Array(2).fill(['finished', 'eval']));
    const files = ['examples/prime-rl/train.toml', 'docs/trainers/verifiers.md'].map((file) => path.join(root, file));
    const loaded = await drive<{ keys: string[]; harness: string; configurations: object[][] }>(palestra, {
      ...program,
      args: ['load', 'palestra/whodunit', ...files],
      run,
    });
    expect(new Set(traces.map(({ key }) => key))).toEqual(new Set([loaded.keys[0]]));
    expect(new Set(loaded.keys).size).toBe(3);
    expect(loaded.harness).toBe('palestra-verifiers');
    const configured = { class: 'PalestraConfig', environment: 'palestra/whodunit', split: 'train' };
    expect(loaded.configurations).toEqual(files.map(() => [expect.objectContaining(configured)]));
  });

  test('a server that disappears is an error of the trace, not a reward', async () => {
    const run = 'vf-fragile';
    const traces = await drive<Trace[]>(palestra, { ...program, args: ['eval', fragile.environment, '2', '1'], run });
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
    expect(rows).toEqual(Array(2).fill({ mode: 'setup', reason: 'valid' }));
    await assertNoSession(palestra);
  });

  test('a policy that cannot be reached leaves no session, and its rollouts have no reward', async () => {
    const run = 'vf-no-policy';
    const traces = await drive<Trace[]>(palestra, {
      ...program,
      args: ['eval', 'palestra/whodunit', '1', '1', 'http://127.0.0.1:9/v1'],
      run,
    });
    expect(traces.map(({ ok }) => ok)).toEqual([false]);
    const rows = await rolloutsOf(palestra, run, 1);
    expect(rows.map((row) => [row.reward, row.failure_class])).toEqual([[null, 'infrastructure']]);
    await assertNoSession(palestra);
  });

  test('an unsupported version is named', async () => {
    const { output } = await start(palestra, { python: 'v167', program: 'verifiers_plugin.py', args: ['load', 'a/b'], run: 'none' });
    expect(output).toContain('needs verifiers >=0.4.0,<0.5, which is not installed');
  });
});
