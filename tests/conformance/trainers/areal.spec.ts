import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf } from './contract.ts';

describe('AReaL 1.0.4: its workflow interface and context, with the shape of its proxy and engine client', () => {
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  /** Of each group the rewards of the turns of each sample, or the exception that rejected it. */
  let areal: {
    agent: number[][][];
    variables: number;
    workflow: number[][];
    fragile: (number[][] | string)[];
    raised: string;
    torch: boolean;
  };
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-areal');
    areal = await drive(palestra, { python: 'v167', program: 'play_areal.py', args: [fragile.environment], run: 'areal' });
  });
  afterAll(() => fragile?.close());

  test('an agent behind the proxy returns the reward, and its samples are a group', async () => {
    expect(areal.torch).toBe(false);
    const rewards = areal.agent.flat(2);
    expect(rewards).toHaveLength(4);
    const rows = await assertRun(palestra, 'areal', { rewards, groups: 2, turns: 2 });
    expect(rows.map(({ phase }) => phase)).toEqual(Array(4).fill('train'));
    await assertRun(palestra, 'areal-subproc', { rewards: [areal.variables], turns: 2 });
  });

  test('a workflow on the engine gives its reward to every turn, and records the version of the weights', async () => {
    const rewards = areal.workflow.map((turns) => turns.at(-1)!);
    expect(areal.workflow).toEqual(rewards.map((reward) => [reward, reward]));
    const rows = await assertRun(palestra, 'areal-workflow', { rewards, groups: 1, turns: 2 });
    expect(rows.map(({ policy_step, phase }) => [policy_step, phase])).toEqual(Array(2).fill([11, 'eval']));
  });

  test('after a failure of the infrastructure a workflow returns None and an agent raises', async () => {
    expect(areal.fragile[0]).toEqual(Array(2).fill([1.25, 1.25]));
    expect(areal.fragile[1]).toEqual([]);
    expect(areal.raised).toBe('InfrastructureFailure');
    const rows = await rolloutsOf(palestra, 'areal-fragile', 4);
    expect(rows.map((row) => [row.reward, row.failure_class])).toEqual([
      [1.25, null],
      [1.25, null],
      [null, 'infrastructure'],
      [null, 'infrastructure'],
    ]);
    await rolloutsOf(palestra, 'areal-raised', 2);
    await assertNoSession(palestra);
  });
});
