import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf } from './contract.ts';

interface Rollout {
  state: string;
  reward: number | null;
  /** Model requests that the gateway recorded, with those that mark others as errors. */
  requests: number;
  /** Turns of which the trainer makes samples. */
  samples: number;
  error: string | null;
}

describe('agent-lightning 1.0.2: its gateway, local runner, hooks and rollout manager', () => {
  const program = { python: 'agentlightning', program: 'play_agentlightning.py', run: 'unused' };
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  let trained: { job: object; played: Rollout[][]; fragile: Rollout[] };
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-agl');
    trained = await drive(palestra, { ...program, args: ['train', fragile.environment] });
  });
  afterAll(() => fragile?.close());

  test('rollouts are stored with the reward, step, group and sample of the trainer', async () => {
    const rollouts = trained.played.flat();
    expect(rollouts.map(({ state, samples }) => [state, samples])).toEqual(Array(4).fill(['succeeded', 2]));
    const rewards = rollouts.map(({ reward }) => reward);
    expect(rewards).toEqual(Array(4).fill(expect.any(Number)));
    const rows = await assertRun(palestra, 'agent-lightning', { rewards, steps: [0, 0, 1, 1], samples: [0, 1, 0, 1], groups: 2, turns: 2 });
    expect(rows.map(({ phase }) => phase)).toEqual(Array(4).fill('train'));
  });

  test('after a failure of the infrastructure the rollout fails without a reward, and the trainer makes no sample of it', async () => {
    const [evaluated, ...failed] = trained.fragile;
    expect(evaluated).toMatchObject({ state: 'succeeded', reward: 1.25, samples: 2 });
    expect(failed.map(({ state, reward, samples }) => [state, reward, samples])).toEqual(Array(2).fill(['failed', null, 0]));
    expect(failed[0]!.error).toContain('exited with code 1');
    // The first was in the middle of its episode: two requests were generated, and two mark them as errors.
    expect(Math.max(...failed.map(({ requests }) => requests))).toBe(4);
    const rows = await rolloutsOf(palestra, 'agent-lightning-fragile', 3);
    expect(rows.map((row) => [row.phase, row.reward, row.failure_class])).toEqual([
      ['eval', 1.25, null],
      ['train', null, 'infrastructure'],
      ['train', null, 'infrastructure'],
    ]);
    await assertNoSession(palestra);
  });

  test('the Kubernetes controller takes the template of the example', () => {
    expect(trained.job).toEqual({
      kind: 'Job',
      command: ['python', '-m', 'palestra.agentlightning'],
      env: ['PALESTRA_URL', 'PALESTRA_API_KEY', 'PALESTRA_RUN', 'AGL_OPENAI_BASE_URL', 'AGL_EVENT_URL', 'AGL_KEY'],
    });
  });

  test('the trainer takes the program of the example', async () => {
    expect(await drive(palestra, { ...program, args: ['example'] })).toEqual({
      agent: 'palestra.agentlightning.Agent',
      hooks: true,
      samples: 8,
      batch: 32,
      rows: [8, 32],
    });
  });

  test('a job that is ended in the middle of an episode closes its session and posts no reward', async () => {
    const ended = await drive<{ code: number; events: string[] }>(palestra, { ...program, args: ['end'] });
    expect(ended).toEqual({ code: 143, events: expect.not.arrayContaining(['reward']) });
    const [left] = await rolloutsOf(palestra, 'agent-lightning-ended', 1);
    expect(left).toMatchObject({ stop: 'cancelled', reward: null });
    await assertNoSession(palestra);
  });
});
