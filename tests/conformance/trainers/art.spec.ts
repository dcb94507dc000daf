import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, failuresOf, hostFragile, rolloutsOf } from './contract.ts';

interface Group {
  rewards: number[];
  /** Types of the exceptions that ART kept apart. */
  exceptions: string[];
  messages: string[];
  /** Number of messages of each history of each trajectory. */
  histories: number[][];
  metrics: number[];
}

describe('openpipe-art 0.5.23: its models, trajectories and gatherer', () => {
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  let played: { groups: Group[]; trained: number[]; example: number[][]; fragile: Group[]; cancelled: string; quota: Group[] };
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-art');
    played = await drive(palestra, { python: 'art', program: 'play_art.py', args: [fragile.environment], run: 'art' });
  });
  afterAll(() => fragile?.close());

  test('the program of docs/trainers/art.md: trajectories have the reward of the rollouts, and one history of all turns', async () => {
    expect(played.groups.map(({ exceptions, metrics }) => [exceptions, metrics])).toEqual(Array(2).fill([[], [2, 2]]));
    // A history ends with the last reply: the prompt, a reply, its result, a reply.
    for (const { histories } of played.groups) expect(histories).toEqual(Array(2).fill([expect.any(Number)]));
    const rewards = played.groups.flatMap((group) => group.rewards);
    await assertRun(palestra, 'art', { rewards, steps: [0, 0, 0, 0], samples: [0, 1, 0, 1], groups: 2, turns: 2 });
  });

  test('the step of a trainable model is the step and the policy version', async () => {
    const rows = await assertRun(palestra, 'art-trained', { rewards: played.trained, steps: [7, 8], samples: [0, 1] });
    expect(rows.map(({ policy_step, phase }) => [policy_step, phase])).toEqual([
      [7, 'train'],
      [8, 'train'],
    ]);
  });

  test('the program of the example trains on its groups', async () => {
    expect(played.example).toEqual(Array(2).fill([expect.any(Number), expect.any(Number)]));
    const rewards = played.example.flat();
    await assertRun(palestra, 'art-example', { rewards, steps: [0, 0, 0, 0], samples: [0, 1, 0, 1], groups: 2, turns: 2 });
  });

  test('failures of the infrastructure are exceptions of the group', async () => {
    const [whole, broken] = played.fragile;
    expect(whole).toMatchObject({ rewards: [1.25, 1.25], exceptions: [] });
    expect(broken).toMatchObject({ rewards: [] });
    expect(broken!.exceptions).toEqual(Array(2).fill(expect.stringContaining('InfrastructureFailure')));
    const rows = await rolloutsOf(palestra, 'art-fragile', 4);
    expect(rows.map((row) => [row.reward, row.failure_class])).toEqual([
      [1.25, null],
      [1.25, null],
      [null, 'infrastructure'],
      [null, 'infrastructure'],
    ]);
    await assertNoSession(palestra);
  });

  test('a cancelled rollout closes its session', async () => {
    expect(played.cancelled).toBe('CancelledError');
    const [left] = await rolloutsOf(palestra, 'art-cancelled', 1);
    expect(left).toMatchObject({ stop: 'cancelled', reward: null, phase: 'eval' });
    await assertNoSession(palestra);
  });

  test('samples that wait for a quota until their time is over are exceptions of the group; the step goes on, and so does the next', async () => {
    const [first, second] = played.quota;
    const reason = /No slot became free .* a quota of the key or the organisation is reached/;
    expect(first).toMatchObject({
      rewards: [expect.any(Number)],
      exceptions: Array(2).fill(expect.stringContaining('InfrastructureFailure')),
      messages: Array(2).fill(expect.stringMatching(reason)),
    });
    expect(second).toMatchObject({ rewards: Array(3).fill(first!.rewards[0]), exceptions: [] });
    const rows = await rolloutsOf(palestra, 'art-quota', 6);
    const [reward] = first!.rewards;
    expect(rows.map((row) => [row.step, row.sample, row.reward, row.stop, row.gaps])).toEqual([
      [0, 0, reward, 'finished', 0],
      ...[1, 2].map((sample) => [0, sample, null, 'infra_error', 0]),
      ...[0, 1, 2].map((sample) => [1, sample, reward, 'finished', 0]),
    ]);
    expect(await failuresOf(palestra, 'art-quota')).toMatchObject([
      { class: 'infrastructure', count: 2, first_step: 0, last_step: 0, example: { text: expect.stringMatching(reason) } },
    ]);
    await assertNoSession(palestra);
  });
});
