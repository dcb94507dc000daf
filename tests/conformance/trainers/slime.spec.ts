import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf } from './contract.ts';

interface Step {
  rewards: number[];
  status: string[];
  removed: boolean[];
  /** Tokens of each sample that the loss counts. */
  trainable: number[];
  /** Whether mask and log probabilities have the length of the response. */
  lengths: boolean[];
  failures: (string | null)[];
  raw: number[];
  normalised: number[];
}

describe('slime 0.3.1 (recorded shapes): generate, reward, log and post-processing functions', () => {
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  let slime: { played: Step; evaluated: number; fragile: Step; open: number };
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-slime');
    slime = await drive(palestra, { python: 'v167', program: 'play_slime.py', args: [fragile.environment], run: 'slime' });
  });
  afterAll(() => fragile?.close());

  test('samples are complete, and their rollouts have the step, group and sample of the training', async () => {
    expect(slime.played).toMatchObject({ status: Array(4).fill('completed'), lengths: Array(4).fill(true), removed: Array(4).fill(false) });
    expect(slime.played.raw).toEqual(slime.played.rewards);
    const rows = await assertRun(palestra, 'slime', {
      rewards: slime.played.rewards,
      steps: [4, 4, 4, 4],
      samples: [0, 1, 0, 1],
      groups: 2,
      turns: 2,
    });
    expect(rows.map(({ phase }) => phase)).toEqual(Array(4).fill('train'));
    expect(slime.open).toBe(0);
  });

  test('an evaluation is recorded as one', async () => {
    const [evaluated] = await assertRun(palestra, 'slime-eval', { rewards: [slime.evaluated], steps: [3] });
    expect(evaluated!.phase).toBe('eval');
  });

  test('a failure of the infrastructure is left out of the loss and of the mean of its group', async () => {
    expect(slime.fragile).toMatchObject({
      status: ['completed', 'failed'],
      removed: [false, true],
      trainable: [2, 0],
      lengths: [true, true],
      failures: [null, 'infrastructure'],
      raw: [1.25, 1.25],
      normalised: [0, 0],
    });
    const rows = await rolloutsOf(palestra, 'slime-fragile', 2);
    expect(rows.map((row) => [row.reward, row.failure_class, row.step])).toEqual([
      [1.25, null, 0],
      [null, 'infrastructure', 0],
    ]);
    await assertNoSession(palestra);
  });
});
