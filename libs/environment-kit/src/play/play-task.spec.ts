import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, tool } from '../definition.ts';
import { playTask } from './play-task.ts';
import type { Player } from './player.ts';

const counter = defineEnvironment<{ goal: number }, { total: number }>({
  name: 'counter',
  splits: ['train', 'test'],
  tasks: (split) => [{ goal: split === 'train' ? 2 : 5 }, { goal: 3 }],
  create: () => ({ total: 0 }),
  prompt: ({ task }) => `Count to ${task.goal}.`,
  rewardRange: [0, 1],
  solve: ({ goal }) => Array.from({ length: goal }, () => ({ tool: 'add', input: { by: 1 } })),
  tools: {
    add: tool({
      description: 'Adds a number.',
      input: z.object({ by: z.int().describe('1 or 2') }),
      run({ by }, { task, state }) {
        if (by === 13) throw new Error('the counter jammed');
        state.total += by;
        const done = state.total >= task.goal;
        return { content: String(state.total), reward: done ? Number(state.total === task.goal) : null, finished: done };
      },
    }),
    stop: tool({ description: 'Ends.', terminal: true, run: () => ({ finished: true }) }),
  },
});
const player = (play: Player['play']): Player => ({ name: 'test', description: 'A player of this test.', play });

describe('playTask', () => {
  test('makes the calls of solve if no player is passed', async () => {
    expect(await playTask(counter)).toEqual({
      prompt: 'Count to 2.',
      calls: [
        { tool: 'add', input: { by: 1 }, text: '1', reward: null, finished: false, refused: null },
        { tool: 'add', input: { by: 1 }, text: '2', reward: 1, finished: true, refused: null },
      ],
      rewards: [1],
      total: 1,
      finished: true,
    });
    expect((await playTask(counter, { split: 'test', index: 0 })).calls).toHaveLength(5);
    expect((await playTask(counter, { task: { goal: 4 } })).prompt).toBe('Count to 4.');
  });

  test('gives the same random numbers for the same seed, and others for another task or seed', async () => {
    const draw = async (seed: number, index: number) => {
      const numbers: number[] = [];
      await playTask(counter, { seed, index, player: player(async ({ random }) => void numbers.push(random(), random())) });
      return numbers;
    };
    expect(await draw(1, 0)).toEqual(await draw(1, 0));
    expect(await draw(1, 0)).not.toEqual(await draw(2, 0));
    expect(await draw(1, 0)).not.toEqual(await draw(1, 1));
  });

  test('shows a player the tools with the terminal one, and its mistakes as results', async () => {
    const { calls, finished } = await playTask(counter, {
      player: player(async ({ tools, call }) => {
        expect(tools.map(({ name }) => name)).toEqual(['add', 'stop']);
        await call('add', { by: 'x' });
        await call('jump', {});
        await call('stop', {});
        await call('add', { by: 1 });
      }),
    });
    expect(calls.map(({ refused }) => refused)).toEqual(['input_validation', 'not_found', null, 'episode_finished']);
    expect(finished).toBe(true);
  });

  test('rejects for a failure of the environment, an endless player and a missing solve', async () => {
    await expect(playTask(counter, { player: player(async ({ call }) => void (await call('add', { by: 13 }))) })).rejects.toThrow(
      'the counter jammed',
    );
    const endless = player(async ({ call }) => {
      for (;;) await call('add', {});
    });
    await expect(playTask(counter, { player: endless, maxCalls: 3 })).rejects.toThrow('The player test made more than 3 calls');
    const { solve: _, ...unsolved } = counter;
    await expect(playTask(unsolved)).rejects.toThrow('Environment counter has no solve(task). Pass a player.');
  });
});
