import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf } from './contract.ts';

describe('rLLM 0.3.0.pre (recorded shapes): agent flow and evaluator', () => {
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  /** Rewards of the trajectories of each episode. */
  let rllm: { rewards: number[][]; names: string[]; fragile: number[][]; error: { message: string } };
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-rllm');
    rllm = await drive(palestra, { python: 'v167', program: 'play_rllm.py', args: [fragile.environment], run: 'rllm' });
  });
  afterAll(() => fragile?.close());

  test('each episode is one trajectory, and its rollout has the group and sample of its session', async () => {
    expect(rllm.names).toEqual(['palestra']);
    expect(rllm.rewards.map(({ length }) => length)).toEqual([1, 1, 1, 1]);
    const rows = await assertRun(palestra, 'rllm', { rewards: rllm.rewards.flat(), samples: [0, 1, 0, 1], groups: 2, turns: 2 });
    expect(rows.map(({ phase }) => phase)).toEqual(Array(4).fill('train'));
  });

  test('a failure of the infrastructure is raised, so that rLLM repeats it and then keeps no trajectory', async () => {
    expect(rllm.fragile).toEqual([[1.25], []]);
    expect(rllm.error.message).not.toBe('');
    const rows = await rolloutsOf(palestra, 'rllm-fragile', 4);
    expect(rows.map((row) => [row.reward, row.failure_class, row.phase])).toEqual([
      [1.25, null, 'eval'],
      ...Array(3).fill([null, 'infrastructure', 'eval']),
    ]);
    await assertNoSession(palestra);
  });
});
