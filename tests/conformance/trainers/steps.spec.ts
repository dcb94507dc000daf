import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf, start } from './contract.ts';

/** `Steps`, on which the adapters of trainers that generate themselves are built. */
describe('an episode that a trainer drives', () => {
  interface Played {
    total: number | null;
    turns: number;
    stop: string;
    failure: string | null;
  }
  const program = { python: 'v167', program: 'steps.py' };
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra);
  });
  afterAll(() => fragile?.close());

  test('plays, and its rollouts are those that it saw', async () => {
    const played = await drive<Played[]>(palestra, { ...program, args: ['play', 'palestra/whodunit'], run: 'steps' });
    expect(played.map(({ turns, stop }) => [turns, stop])).toEqual(Array(4).fill([2, 'finished']));
    const rows = await assertRun(palestra, 'steps', {
      rewards: played.map(({ total }) => total),
      steps: [3, 3, 3, 3],
      samples: [0, 1, 0, 1],
      groups: 2,
      turns: 2,
    });
    expect(rows.map(({ policy_step, stop }) => [policy_step, stop])).toEqual(Array(4).fill([7, 'finished']));
  });

  test('a server that disappears in the middle of an episode is a failure of the infrastructure, and no reward', async () => {
    const played = await drive<Played[]>(palestra, { ...program, args: ['play', fragile.environment], run: 'fragile' });
    expect(played.slice(0, 2).map(({ total, failure }) => [total, failure])).toEqual(Array(2).fill([1.25, null]));
    expect(played.slice(2).map(({ total, failure }) => [total, failure])).toEqual(Array(2).fill([null, 'infrastructure']));
    const rows = await rolloutsOf(palestra, 'fragile', 4);
    expect(rows.map((row) => [row.reward, row.failure_class])).toEqual([
      [1.25, null],
      [1.25, null],
      [null, 'infrastructure'],
      [null, 'infrastructure'],
    ]);
    expect(rows.map(({ group }) => group === null)).toEqual(Array(4).fill(false));
  });

  test.each([
    ['never closes its episode', 'leave', 0],
    ['raises in the middle of its episode', 'raise', 1],
  ])('a trainer that %s leaves no session', async (name, mode, code) => {
    const finished = await start(palestra, { ...program, args: [mode, 'palestra/whodunit'], run: name });
    expect(finished.code, finished.output).toBe(code);
    const [left] = await rolloutsOf(palestra, name, 1);
    expect(left).toMatchObject({ stop: 'aborted', step: 3 });
    await assertNoSession(palestra);
  });
});
