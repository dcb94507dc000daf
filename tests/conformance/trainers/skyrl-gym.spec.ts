import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, assertRun, drive, hostFragile, rolloutsOf, start } from './contract.ts';

/** `palestra.skyrl.PalestraEnv` through the real skyrl-gym, without torch. */
describe('the environment of SkyRL-Gym', () => {
  interface Output {
    observations: { role: string; content: string }[];
    reward: number;
    done: boolean;
    metadata: Record<string, unknown>;
  }
  interface Played {
    outputs: Output[];
    metrics: Record<string, number>;
  }
  const whodunit = 'palestra/whodunit';
  let palestra: SharedPalestra;
  let fragile: Awaited<ReturnType<typeof hostFragile>>;
  beforeAll(async () => {
    palestra = await sharedPalestra();
    fragile = await hostFragile(palestra, 'fragile-skyrl');
  });
  afterAll(() => fragile?.close());

  const program = { python: 'skyrl', program: 'play_skyrl_gym.py' };
  const play = <T>(scenario: string, environment: string, run: string) =>
    drive<T>(palestra, { ...program, args: [scenario, environment], run });

  test('plays, and records each episode at its place in the training', async () => {
    const played = await play<Played[]>('play', whodunit, 'skyrl-gym');
    for (const { outputs, metrics } of played) {
      expect(outputs.map(({ done }) => done)).toEqual([false, true]);
      expect(outputs[0]).toMatchObject({
        observations: [{ role: 'user', content: expect.stringMatching(/^<tool_response>\n[^]+\n<\/tool_response>$/) }],
        metadata: { tool_name: 'search' },
      });
      expect(outputs[1]!.metadata).toMatchObject({ tool_name: 'accuse', stop_reason: 'finished' });
      expect(metrics).toEqual({ turns: 2, total_reward: outputs[0]!.reward + outputs[1]!.reward, num_rewards: 2 });
    }
    const rows = await assertRun(palestra, 'skyrl-gym', {
      rewards: played.map(({ metrics }) => metrics['total_reward']!),
      steps: [4, 4, 4, 4],
      samples: [0, 1, 0, 1],
      groups: 2,
      turns: 2,
    });
    expect(rows.map(({ stop, policy_step, phase }) => [stop, policy_step, phase])).toEqual(Array(4).fill(['finished', 3, 'train']));
  });

  test('masks a server that disappears, and never raises', async () => {
    const { outputs, metrics, after } = await play<Played & { after: Output }>('fragile', fragile.environment, 'skyrl-fragile');
    const masked = { observations: [], reward: 0, done: true, metadata: { mask: true, failure_class: 'infrastructure' } };
    expect(outputs).toMatchObject([{ reward: 0.25, done: false }, masked]);
    expect(after).toMatchObject(masked);
    // No mean of SkyRL's metrics counts it.
    expect(metrics).toEqual({});
    const failures = ['infrastructure'] as const;
    expect(await assertRun(palestra, 'skyrl-fragile', { rewards: [null], failures: [...failures] })).toMatchObject([
      { stop: 'infra_error' },
    ]);
  });

  test('masks an environment that cannot be opened, and refuses rows that can never be played', async () => {
    const { init, step, errors } = await play<{ init: unknown; step: Output; errors: string[] }>('missing', whodunit, 'skyrl-missing');
    expect(init).toEqual([[{ role: 'user', content: 'x' }], {}]);
    expect(step).toMatchObject({ observations: [], reward: 0, done: true, metadata: { mask: true, code: 'deployment_not_found' } });
    expect(errors).toEqual([expect.stringContaining('No task in this row'), "Unknown parse 'xml'. Available: tool_call, action."]);
  });

  test('ends the session of an episode whose context is full', async () => {
    await play('length', whodunit, 'skyrl-length');
    expect(await rolloutsOf(palestra, 'skyrl-length', 1)).toMatchObject([{ stop: 'context_length', turns: 1, failure_class: null }]);
    await assertNoSession(palestra);
  });

  test.each([
    ['drops its environment without closing it', 'dropped', 0],
    ['raises in the middle of an episode', 'raises', 1],
  ])('a trainer that %s leaves no session', async (_name, scenario, code) => {
    const run = `skyrl-${scenario}`;
    const finished = await start(palestra, { ...program, args: [scenario, whodunit], run });
    expect(finished.code, finished.output).toBe(code);
    expect(await rolloutsOf(palestra, run, 1)).toMatchObject([{ stop: 'aborted', turns: 1 }]);
    await assertNoSession(palestra);
  });
});
