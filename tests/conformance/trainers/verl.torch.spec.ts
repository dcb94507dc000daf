import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, ordered, rolloutsOf } from './contract.ts';

/** verl's v1 worker, data set, building of tokens and advantages on a CPU; only its queue and its language model are replaced. */
describe('an agent loop of verl', () => {
  interface Seen {
    /** `failure` would cost all samples of the prompt. */
    statuses: Record<string, string>;
    rows: Record<string, { reward: number; trained: number; length: number; partition: string; versions: number[] }>;
    advantages: Record<string, number>;
  }
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  let seen: Record<'train' | 'model' | 'cancel' | 'fail', Seen>;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-verl');
    seen = await drive(palestra, {
      python: 'verl',
      program: 'play_verl.py',
      args: ['palestra/whodunit', fragile.environment],
      run: 'verl',
    });
  });
  afterAll(() => fragile?.close());

  test('plays groups and validation; its rollouts are what the trainer got', async () => {
    const { statuses, rows } = seen.train;
    expect(statuses).toEqual({ uid0: 'finished', uid1: 'finished', val2: 'finished' });
    expect(Object.keys(rows)).toEqual(['uid0_0_0', 'uid0_1_0', 'uid1_0_0', 'uid1_1_0', 'val2_0_0']);
    for (const row of Object.values(rows)) {
      // The observation between two replies is not trained.
      expect(row.trained).toBeGreaterThan(0);
      expect(row.trained).toBeLessThan(row.length);
      expect(row.versions).toEqual([4, 4]);
    }
    const stored = await assertRun(palestra, 'verl-train', {
      rewards: Object.values(rows).map(({ reward }) => reward),
      steps: [5, 5, 5, 5, 5],
      turns: 2,
    });
    expect(stored.map(({ policy_step }) => policy_step)).toEqual(Array(5).fill(4));
    const first = (group: string | null) => stored.findIndex((other) => other.group === group);
    expect(stored.map(({ group, sample, phase }) => [first(group), sample, phase])).toEqual([
      [0, 0, 'train'],
      [0, 1, 'train'],
      [2, 0, 'train'],
      [2, 1, 'train'],
      [4, 0, 'eval'],
    ]);
  });

  test('a sample that loses its environment is left out of its group, and changes no advantage', async () => {
    const { statuses, rows, advantages } = seen.fail;
    expect(statuses).toEqual({ uid1: 'finished' });
    const [scored, ...others] = Object.keys(rows);
    expect(others).toEqual([]);
    expect(rows[scored!]!.reward).toBeCloseTo(1.25, 5);
    // A group of one: a fake zero beside it would have halved this.
    expect(advantages[scored!]).toBeCloseTo(1.25, 3);
    const stored = await rolloutsOf(palestra, 'verl-fail', 2);
    expect(ordered(stored.map((row) => [row.reward, row.failure_class]))).toEqual([
      [1.25, null],
      [null, 'infrastructure'],
    ]);
  });

  test('of a group without any reward, here because the language model fails, the trainer gets one sample that trains nothing', async () => {
    const { statuses, rows, advantages } = seen.model;
    expect(statuses).toEqual({ uid0: 'finished' });
    const [masked, ...others] = Object.keys(rows);
    expect(others).toEqual([]);
    expect(rows[masked!]).toMatchObject({ trained: 0, length: 1, versions: [4, 4] });
    expect(advantages[masked!]).toBe(0);
    const stored = await rolloutsOf(palestra, 'verl-model', 2);
    expect(stored.map((row) => [row.reward, row.failure_class])).toEqual(Array(2).fill([null, 'infrastructure']));
  });

  test('a step that the trainer cancels leaves no session', async () => {
    expect(seen.cancel.rows).toEqual({});
    const stored = await rolloutsOf(palestra, 'verl-cancel', 2);
    expect(stored.map(({ stop, reward }) => [stop, reward])).toEqual(Array(2).fill(['cancelled', null]));
    await assertNoSession(palestra);
  });
});
