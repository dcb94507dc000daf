import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf } from './contract.ts';

interface Step {
  rewards: number[];
  status: string[];
  removed: boolean[];
  failures: (string | null)[];
  tool_time: boolean[];
  raw: number[];
  normalised: number[];
}

/** Defines the tests of the agent, abort, reward, log and post-processing functions. `args`: further ones of the program. */
export function testMiles(run: string, python: string, args: string[] = []): void {
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  let miles: { played: Step; fragile: Step; aborted: string[] };
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, `fragile-${run}`);
    miles = await drive(palestra, { python, program: 'play_miles.py', args: [fragile.environment, ...args], run });
  });
  afterAll(() => fragile?.close());

  test('the log function gives the rollouts of the agent function their step, group, sample and policy version', async () => {
    expect(miles.played).toMatchObject({
      status: Array(4).fill('completed'),
      removed: Array(4).fill(false),
      tool_time: Array(4).fill(true),
    });
    const rows = await assertRun(palestra, run, {
      rewards: miles.played.rewards,
      steps: [5, 5, 5, 5],
      samples: [0, 1, 0, 1],
      groups: 2,
      turns: 2,
    });
    // The older of two versions of the weights.
    expect(rows.map(({ policy_step, phase }) => [policy_step, phase])).toEqual(Array(4).fill([5, 'train']));
  });

  test('failed samples are left out of the loss and of the mean of their group, also when the agent function raised', async () => {
    expect(miles.fragile).toMatchObject({
      status: ['completed', 'failed', 'failed'],
      removed: [false, true, true],
      failures: [null, expect.any(String), 'chat_failed'],
      raw: [1.25, 1.25, 1.25],
      normalised: [0, 0, 0],
    });
    const rows = await rolloutsOf(palestra, `${run}-fragile`, 2);
    expect(rows.map((row) => [row.reward, row.failure_class, row.group !== null])).toEqual([
      [1.25, null, true],
      [null, 'infrastructure', true],
    ]);
    await assertNoSession(palestra);
  });

  test('abort ends an episode that waits for the model, and its session', async () => {
    expect(miles.aborted).toEqual(['failed', 'aborted']);
    const [left] = await rolloutsOf(palestra, `${run}-aborted`, 1);
    expect(left).toMatchObject({ stop: 'cancelled', reward: null });
    await assertNoSession(palestra);
  });
}
