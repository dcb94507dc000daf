import type { RolloutRow } from '@palestra/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertRun, drive, hostFragile, rolloutsOf } from './contract.ts';

/** `palestra.skyrl.PalestraGenerator` on the real generator of SkyRL, with torch, set up by the lines of docs/trainers/skyrl.md. */
describe('the generator of SkyRL', () => {
  interface Batch {
    rewards: number[];
    /** Tokens of each row that the loss counts. */
    trained: number[];
    stops: string[];
    last: boolean[] | null;
    metrics: Record<string, number>;
    live: number;
  }
  const whodunit = 'palestra/whodunit';
  let palestra: SharedPalestra;
  const hosts: Awaited<ReturnType<typeof hostFragile>>[] = [];
  beforeAll(async () => {
    palestra = await sharedPalestra();
  });
  afterAll(() => {
    for (const host of hosts) host.close();
  });
  const play = <T>(scenario: string, environment: string, run: string) =>
    drive<T>(palestra, { python: 'skyrl-torch', program: 'play_skyrl_generator.py', args: [scenario, environment], run });

  test('records step, phase, group, sample and version of the weights', async () => {
    const [train, evaluation] = await play<[Batch, Batch]>('play', whodunit, 'skyrl-generator');
    expect(train.stops).toEqual(Array(4).fill('stop'));
    expect(train.trained.every((tokens) => tokens > 0)).toBe(true);
    expect(train.metrics).toMatchObject({ 'environment/turns': 2, 'environment/num_rewards': 2 });
    expect(train.metrics).not.toHaveProperty('environment/failed_episodes');
    const rows = await rolloutsOf(palestra, 'skyrl-generator', 6);
    const places = rows.map((row) => [row.phase, row.step, row.task_index, row.sample, row.policy_step]);
    const of = (phase: string, task: number) => [0, 1].map((sample) => [phase, 5, task, sample, 7]);
    expect(places).toEqual(expect.arrayContaining([...of('train', 0), ...of('train', 1), ...of('eval', 0)]));
    // A row of the data set is one group in each phase.
    for (const key of [({ group }: RolloutRow) => group, (row: RolloutRow) => `${row.phase} ${row.task_index} ${row.group}`])
      expect(new Set(rows.map(key)).size).toBe(3);
    const total = (list: (number | null)[]) => list.reduce<number>((sum, one) => sum + one!, 0);
    expect(total(rows.map(({ reward }) => reward))).toBeCloseTo(total([...train.rewards, ...evaluation.rewards]));
    expect(rows.map((row) => [row.turns, row.stop, row.failure_class])).toEqual(Array(6).fill([2, 'finished', null]));
  });

  test.each([
    ['an episode', 'fragile', [1.25, 1.25], null],
    ['each turn of an episode, with step-wise trajectories', 'fragile-step_wise', [0.25, 1, 0, 1], [false, true, false, true]],
  ])('masks %s that failed, with a reward that moves no baseline', async (_name, scenario, rewards, last) => {
    const host = await hostFragile(palestra, scenario.replace('_', '-'));
    hosts.push(host);
    const batch = await play<Batch>(scenario, host.environment, `skyrl-${scenario}`);
    expect(batch.rewards).toEqual(rewards);
    expect(batch.last).toEqual(last);
    const half = rewards.length / 2;
    expect(batch.trained.map((tokens) => tokens > 0)).toEqual(rewards.map((_, row) => row < half));
    expect(batch.stops).toEqual(rewards.map((_, row) => (row < half ? 'stop' : 'error')));
    // The mean reward is that of the episode that counts.
    expect(batch.metrics).toMatchObject({ 'environment/failed_episodes': 1, 'environment/total_reward': 1.25 });
    expect(batch.live).toBe(0);
    const rows = await rolloutsOf(palestra, `skyrl-${scenario}`, 2);
    const facts = rows.map((row) => [row.reward, row.failure_class]);
    expect(facts).toEqual([
      [1.25, null],
      [null, 'infrastructure'],
    ]);
  });

  test('closes every session when SkyRL raises, while its process goes on', async () => {
    expect(await play('raises', whodunit, 'skyrl-raises')).toEqual({ error: 'the engine fails', live: 0 });
    const rows = await rolloutsOf(palestra, 'skyrl-raises', 2);
    expect(rows.map(({ stop }) => stop)).toContain('aborted');
  });

  test('ends episodes whose context is full', async () => {
    const batch = await play<Batch>('length', whodunit, 'skyrl-context');
    expect(batch).toMatchObject({ stops: ['length', 'length'], live: 0 });
    expect(batch.trained.every((tokens) => tokens > 0)).toBe(true);
    const rows = await assertRun(palestra, 'skyrl-context', { rewards: batch.rewards, turns: 1, groups: 1 });
    expect(rows.map(({ stop }) => stop)).toEqual(['context_length', 'context_length']);
  });

  test('reads the settings of the page and of the example', async () => {
    const train = ['train.parquet'];
    expect(await play('settings', '', 'unused')).toEqual([
      [train, 10, 'openreward'],
      [train, 10, 'openreward'],
    ]);
  });
});
