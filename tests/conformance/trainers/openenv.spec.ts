import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, drive, groupsOf, hostFragile, ordered, rolloutsOf } from './contract.ts';

/** OpenEnv 0.10's harness, which TRL's `openenv_harness` drives, with hosted environments. */
describe('ResourceSessionFactory', () => {
  const program = { python: 'oe-0.10.0', program: 'openenv_harness.py' };
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-openenv');
  });
  afterAll(() => fragile?.close());

  type Played = [number | string, boolean | string, { turns: number; calls: number; stop: string }?][];

  test('plays the same task in all samples of a group, and records them', async () => {
    const run = 'openenv-play';
    const played = await drive<Played>(palestra, { ...program, args: ['play', 'palestra/whodunit'], run });
    expect(played.map(([, done]) => done)).toEqual(Array(5).fill(true));
    expect(played.map(([, , metrics]) => metrics)).toEqual(Array(5).fill({ turns: 2, calls: 2, stop: 'finished' }));
    const rows = await rolloutsOf(palestra, run, 5);
    const groups = groupsOf(rows).map((group) =>
      group
        .map(({ sample, task_index, turns, reward }) => ({ sample, task_index, turns, reward }))
        .toSorted((a, b) => a.sample! - b.sample!),
    );
    const row = (sample: number, task: number, at: number) => ({ sample, task_index: task, turns: 2, reward: played[at]![0] });
    // The last one names task 1, whatever the seed.
    expect(groups).toHaveLength(3);
    expect(groups).toEqual(expect.arrayContaining([[row(0, 0, 0), row(1, 0, 1)], [row(0, 1, 2), row(1, 1, 3)], [row(0, 1, 4)]]));
    expect(rows.map(({ session }) => session)).toEqual(Array(5).fill(expect.any(String)));
    await assertNoSession(palestra);
  });

  test('a server that disappears makes a rollout unscorable, then sessions that cannot be created', async () => {
    const run = 'openenv-fail';
    const played = await drive<Played>(palestra, { ...program, args: ['fail', fragile.environment], run });
    expect(played).toEqual([
      [1.25, true, { turns: 2, calls: 2, stop: 'finished' }],
      [1.25, true, { turns: 2, calls: 2, stop: 'finished' }],
      ['unscorable', 'infrastructure'],
      ['not created', 'infrastructure'],
      ['not created', 'infrastructure'],
    ]);
    const rows = await rolloutsOf(palestra, run, 5);
    expect(ordered(rows.map((row) => [row.task_index, row.reward, row.failure_class]))).toEqual([
      [0, 1.25, null],
      [0, 1.25, null],
      ...Array.from({ length: 3 }, () => [1, null, 'infrastructure']),
    ]);
    await assertNoSession(palestra);
  });

  test('sessions that the harness never closes end with the process', async () => {
    await drive(palestra, { ...program, args: ['leave', 'palestra/whodunit'], run: 'openenv-leave' });
    await assertNoSession(palestra);
  });
});
