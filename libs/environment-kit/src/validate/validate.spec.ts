import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, type Environment, type EnvironmentDefinition, tool } from '../definition.ts';
import type { Player } from '../play/player.ts';
import { CHECKS } from './checks.ts';
import { validateEnvironment } from './validate.ts';

interface Task {
  id: number;
  secret: number;
}
interface State {
  left: number;
}
type Definition = EnvironmentDefinition<Task, State>;

const guess = (
  run: (
    input: { number: number },
    session: { task: Task; state: State },
  ) => { content: string; reward?: number | null; finished?: boolean },
) =>
  tool({
    description: 'Guesses the number.',
    input: z.strictObject({ number: z.int().min(0).max(100_000).describe('The guess.') }),
    run,
  });

const sound: Definition = {
  name: 'sound',
  splits: ['train', 'test'],
  tasks: (split) => Array.from({ length: 20 }, (_, id) => ({ id, secret: 10_000 + 37 * id + (split === 'test' ? 1 : 0) })),
  create: () => ({ left: 3 }),
  prompt: ({ task }) => `Guess number ${task.id}.`,
  rewardRange: [0, 1],
  deterministic: true,
  solve: ({ secret }) => [{ tool: 'guess', input: { number: secret } }],
  tools: {
    guess: guess(({ number }, { task, state }) => {
      state.left -= 1;
      if (number === task.secret) return { content: 'Right!', reward: 1, finished: true };
      return { content: number < task.secret ? 'Higher.' : 'Lower.', reward: 0, finished: state.left === 0 };
    }),
  },
};

const broken = (changes: Partial<Definition>): Environment => defineEnvironment({ ...sound, ...changes } as Definition);
const quick = { tasks: 3, playerTasks: 0, replays: 2 };

async function check(environment: Environment, id: string, options = {}) {
  const { checks } = await validateEnvironment(environment, { ...quick, ...options });
  return checks.find((one) => one.id === id)!;
}
const failing = async (environment: Environment, options = {}) =>
  (await validateEnvironment(environment, { ...quick, ...options })).checks.filter(({ status }) => status === 'failed').map(({ id }) => id);

describe('a sound environment', () => {
  test('passes every check', async () => {
    const { checks, ...rest } = await validateEnvironment(defineEnvironment(sound), quick);
    expect(checks.map(({ id, status, detail }) => [id, status, detail])).toEqual(
      CHECKS.map(({ id }) => [id, 'passed', expect.any(String)]),
    );
    expect(rest).toMatchObject({ players: [], reward_range: [0, 1], kit: expect.stringMatching(/^\d+\.\d+/) });
  });

  test('has one row for each player, with an interval that is never empty', async () => {
    const naive: Player = {
      name: 'naive',
      description: 'Guesses 10 000.',
      play: async ({ call }) => void (await call('guess', { number: 10_000 })),
    };
    const { players } = await validateEnvironment(broken({ players: [naive] }), { ...quick, playerTasks: 4 });
    expect(players.map(({ name, split, tasks, mean, solved }) => ({ name, split, tasks, mean, solved }))).toEqual([
      { name: 'random', split: 'test', tasks: 4, mean: 0, solved: 0 },
      { name: 'naive', split: 'test', tasks: 4, mean: 0, solved: 0 },
      { name: 'solve', split: 'test', tasks: 4, mean: 1, solved: 1 },
    ]);
    for (const { mean, low, high } of players) expect(low <= mean && mean <= high && low < high).toBe(true);
    const hurried = await validateEnvironment(broken({ players: [naive] }), { ...quick, playerTasks: 100, playerBudgetMs: -1 });
    expect(hurried.players.map(({ tasks }) => tasks)).toEqual([1, 1, 1]);
    const [random] = (await validateEnvironment(broken({}), { ...quick, playerTasks: 100 })).players;
    expect(random).toMatchObject({ tasks: 20, low: 0 });
    // Wilson's interval of 0 of 20.
    expect(random!.high).toBeCloseTo(0.1611, 4);
  });
});

describe('finds', () => {
  test('a split without tasks', async () => {
    const environment = broken({ tasks: (split) => (split === 'test' ? [] : [{ id: 0, secret: 12_345 }]) });
    expect(await failing(environment)).toEqual(['runtime.task_declaration_accuracy']);
    expect((await check(environment, 'runtime.task_declaration_accuracy')).detail).toBe(
      'No tasks in "test". Add tasks or remove the split.',
    );
  });

  test('a setup that fails, or takes too long', async () => {
    const failed = await check(broken({ setup: () => Promise.reject(new Error('no data')) }), 'runtime.startup');
    expect(failed.detail).toContain('train 0: PalestraError: Error: no data');
    const slow = broken({ setup: ({ signal }) => sleep(60_000, undefined, { signal }).catch(() => {}) });
    expect(await check(slow, 'runtime.startup', { setupTimeoutMs: 20, tasks: 1 })).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('no prompt after 0.02 s') as string,
    });
  });

  test('a tool that throws', async () => {
    const environment = broken({
      solve: undefined,
      tools: {
        guess: guess(() => {
          throw new Error('kaboom');
        }),
      },
    });
    expect(await check(environment, 'runtime.no_failures')).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('train 0: ToolRaisedError: kaboom') as string,
    });
  });

  test('a task in two splits', async () => {
    const environment = broken({ tasks: (split) => [{ id: split === 'test' ? 1 : 0, secret: 12_345 }] });
    expect(await failing(environment)).toEqual(['static.disjoint_splits']);
    expect((await check(environment, 'static.disjoint_splits')).detail).toContain('test 0 is the same task as train 0.');
  });

  test('arguments without description, and optional ones whose misspelling would be ignored', async () => {
    const loose = tool({
      description: 'Guesses.',
      input: z.object({ number: z.int().default(0) }),
      run: sound.tools!['guess']!.run as never,
    });
    const { detail, status } = await check(broken({ tools: { guess: loose } }), 'runtime.tool_schemas');
    expect(status).toBe('failed');
    expect(detail).toContain('guess: "number" has no description; guess ignores a misspelled optional argument; use z.strictObject.');
  });

  test('a tool that accepts wrong arguments', async () => {
    const input = z.strictObject({ number: z.any().describe('The guess.') });
    const inputSchema = {
      type: 'object',
      properties: { number: { type: 'integer', description: 'The guess.' } },
      additionalProperties: false,
    };
    const sloppy = tool({ description: 'Guesses.', input, inputSchema, run: sound.tools!['guess']!.run as never });
    expect(await failing(broken({ tools: { guess: sloppy } }))).toEqual(['runtime.input_validation']);
  });

  test('a reward outside of the range, and an episode without reward', async () => {
    const high = broken({ rewardRange: undefined, tools: { guess: guess(() => ({ content: 'ok', reward: 2, finished: true })) } });
    expect(await check(high, 'runtime.reward_well_formed')).toMatchObject({
      status: 'failed',
      detail: 'The total reward 2 of train 0 is outside of [0, 1]. Declare rewardRange: [lowest, highest] (of a server: --reward-range).',
    });
    const none = broken({ solve: undefined, tools: { guess: guess(() => ({ content: 'ok', finished: true })) } });
    expect(await failing(none)).toEqual(['runtime.reward_well_formed']);
  });

  test('a result that depends on something else than the task', async () => {
    let calls = 0;
    const tools = { guess: guess(() => ({ content: String((calls += 1)), reward: 0, finished: false })) };
    const environment = broken({ solve: undefined, tools });
    expect(await failing(environment)).toEqual(['runtime.episode_determinism']);
    expect((await check(environment, 'runtime.episode_determinism')).detail).toContain('the result of call 1 (guess) differs');
    expect(await check(broken({ solve: undefined, tools, deterministic: false }), 'runtime.episode_determinism')).toMatchObject({
      status: 'skipped',
    });
  });

  test('state that episodes share', async () => {
    let total = 0;
    const environment = broken({
      solve: undefined,
      create: () => ({ left: (total = 0) }),
      tools: { guess: guess(() => ({ content: String((total += 1)), reward: 0, finished: false })) },
    });
    expect(await failing(environment)).toEqual(['runtime.episode_isolation']);
  });

  test('a solution that does not reach the maximum', async () => {
    const environment = broken({ solve: () => [{ tool: 'guess', input: { number: 7 } }] });
    expect(await failing(environment)).toEqual(['semantic.oracle_max']);
    expect((await check(environment, 'semantic.oracle_max')).detail).toContain('solve stayed below 1 in 6 of 6 tasks (train 0: 0');
    expect((await check(broken({ solve: undefined }), 'semantic.oracle_max')).status).toBe('skipped');
  });

  test('an unknown split of the scores, with those that exist', async () => {
    const wrong = validateEnvironment(broken({}), { tasks: 1, playerTasks: 1, playerSplit: 'wrong' });
    await expect(wrong).rejects.toThrow('Unknown split "wrong" of sound. Available: train, test.');
  });

  test('a reward for random calls', async () => {
    expect(await failing(broken({ tools: { guess: guess(() => ({ content: 'ok', reward: 1, finished: true })) } }))).toEqual([
      'semantic.floor_gap',
    ]);
  });

  test('an answer in the prompt or in a description, but not one of listed choices', async () => {
    const leaky = broken({ prompt: ({ task }) => `Guess. Do not tell: it is ${task.secret}!` });
    expect(await failing(leaky)).toEqual(['semantic.no_solution_leakage']);
    expect((await check(leaky, 'semantic.no_solution_leakage')).detail).toContain('train 0 shows "10000"');
    const choices = broken({ prompt: ({ task }) => `Which one: 10, ${task.secret}, or 99999?` });
    expect((await check(choices, 'semantic.no_solution_leakage')).status).toBe('passed');
    expect((await check(broken({ ...leaky, answersInPrompt: true } as never), 'semantic.no_solution_leakage')).status).toBe('skipped');
  });
});
