import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile } from './contract.ts';

/** `/nemo-gym` with the real agent of NeMo Gym 0.7, and with its own check of resources servers. */
describe('a resources server of NeMo Gym', () => {
  interface Collected {
    verified: { reward: number; mask_sample: boolean; failure_kind: string | null; _ng_task_index: number }[];
    metrics: { agent_metrics: Record<string, number> };
  }
  const program = { python: 'nemo-gym', program: 'nemo_gym_agent.py' };
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra);
  });
  afterAll(() => fragile?.close());

  test('fulfils the contract of sessions', async () => {
    expect(await drive(palestra, { ...program, args: ['conformance', 'palestra/whodunit'], run: 'contract' })).toEqual({ checked: true });
    await assertNoSession(palestra);
  });

  test('is played by the simple agent, and its rollouts are those that it verified', async () => {
    const run = 'nemo-gym';
    const { verified, metrics } = await drive<Collected>(palestra, { ...program, args: ['agent', 'palestra/whodunit', '2', '2'], run });
    expect(verified.map(({ mask_sample, failure_kind }) => [mask_sample, failure_kind])).toEqual(Array(4).fill([false, null]));
    const rewards = verified.map(({ reward }) => reward);
    expect(metrics.agent_metrics['mean/reward']).toBeCloseTo(rewards.reduce((sum, reward) => sum + reward, 0) / 4, 5);
    await assertRun(palestra, run, { rewards, samples: [0, 1, 0, 1], groups: 2 });
  });

  test('masks the samples of a server that disappears', async () => {
    const run = 'nemo-gym-fragile';
    const { verified, metrics } = await drive<Collected>(palestra, { ...program, args: ['agent', fragile.environment, '2', '1'], run });
    expect(verified[0]).toMatchObject({ reward: 1.25, mask_sample: false });
    expect(verified[1]).toMatchObject({ mask_sample: true, failure_kind: expect.stringMatching(/^(session_lost|transport_unreachable)$/) });
    expect(metrics.agent_metrics).toMatchObject({ 'mean/reward': 1.25, 'coverage/masked_rollouts': 1 });
    await assertRun(palestra, run, { rewards: [1.25, null], failures: [null, 'infrastructure'] });
  });
});
