import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, ordered, rolloutsOf } from './contract.ts';

/** tinker-cookbook's rollouts, strategies, renderer and evaluator on a CPU; only the policy is scripted. */
describe('groups of tinker-cookbook', () => {
  interface Group {
    rewards: number[];
    turns: number[];
    stops: string[];
    errors: string[];
  }
  interface Seen {
    train: { groups: Group[]; evaluations: number[] };
    text: Group;
    length: Group;
    retry: Group;
    fail: Group;
    cancel: string;
    example: { model: string; tolerance: string };
  }
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  let seen: Seen;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-tinker');
    const args = ['palestra/whodunit', fragile.environment];
    seen = await drive(palestra, { python: 'tinker', program: 'play_tinker.py', args, run: 'tinker' });
  });
  afterAll(() => fragile?.close());

  test('play training and evaluation; the rollouts are what the trainer got', async () => {
    const { groups, evaluations } = seen.train;
    expect(groups.map(({ turns, stops, errors }) => [turns, stops, errors])).toEqual(
      Array(2).fill([[2, 2], ['tool_stopped', 'tool_stopped'], []]),
    );
    const stored = await assertRun(palestra, 'tinker-train', {
      rewards: [...groups.flatMap(({ rewards }) => rewards), ...evaluations],
      // The evaluations follow two steps.
      steps: [0, 0, 1, 1, 2, 2],
      samples: [0, 1, 0, 1, 0, 0],
      turns: 2,
    });
    expect(stored.map(({ phase }) => phase)).toEqual(['train', 'train', 'train', 'train', 'eval', 'eval']);
    const named = stored.map(({ group }) => stored.findIndex((other) => other.group === group));
    expect(named).toEqual([0, 0, 2, 2, 4, 5]);
  });

  test('are configured as in the example', () => {
    expect(seen.example).toEqual({ model: 'Qwen/Qwen3-30B-A3B-Instruct-2507', tolerance: 'MinViableGroup' });
  });

  test('call by text as well', async () => {
    expect(seen.text).toMatchObject({ turns: [2, 2], errors: [] });
    await assertRun(palestra, 'tinker-text', { rewards: seen.text.rewards, groups: 1, turns: 2 });
  });

  test('a generation that is cut ends the episode as tinker says', async () => {
    expect(seen.length.stops).toEqual(['max_tokens', 'max_tokens']);
    const stored = await rolloutsOf(palestra, 'tinker-length', 2);
    expect(stored.map(({ stop }) => stop)).toEqual(['max_tokens', 'max_tokens']);
  });

  test('a sample that loses its environment is an error of the group, never a reward', async () => {
    expect(seen.fail.rewards).toEqual([expect.closeTo(1.25, 5)]);
    expect(seen.fail.errors).toEqual(['InfrastructureFailure']);
    const stored = await rolloutsOf(palestra, 'tinker-fail', 2);
    // Which of the two finished first is open.
    expect(ordered(stored.map((row) => [row.reward, row.failure_class]))).toEqual([
      [1.25, null],
      [null, 'infrastructure'],
    ]);
  });

  test('a retried sample leaves no session of the first try', async () => {
    expect(seen.retry.rewards).toHaveLength(2);
    expect(seen.retry.errors).toEqual(['RuntimeError']);
    const stored = await rolloutsOf(palestra, 'tinker-retry', 3);
    expect(ordered(stored.map(({ stop }) => stop))).toEqual(['aborted', 'finished', 'finished']);
    await assertNoSession(palestra);
  });

  test('a group that the trainer cancels leaves no session', async () => {
    expect(seen.cancel).toBe('CancelledError');
    const stored = await rolloutsOf(palestra, 'tinker-cancel', 2);
    expect(stored.map(({ stop, reward }) => [stop, reward])).toEqual(Array(2).fill(['aborted', null]));
    await assertNoSession(palestra);
  });
});
