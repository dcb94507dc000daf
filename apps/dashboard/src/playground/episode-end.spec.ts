import { describe, expect, test } from 'vitest';
import { choiceOf, episodeEnd, nextChoice } from './episode-end.ts';

describe('how an episode ended', () => {
  const call = (reward: number | null, finished = false) => ({ reward, finished });
  test.each([
    ['ready', true, null, [], null],
    ['ready', true, 0.05, [call(0.05)], null],
    ['finished', true, 0.95, [call(0.05), call(0.9, true)], 'Solved, .950'],
    ['finished', true, 1.3, [call(1.3, true)], 'Solved, 1.30'],
    ['finished', true, 0.05, [call(0.05), call(0, true)], 'Ended: finished, reward .0500'],
    ['finished', true, null, [call(null, true)], 'Ended: finished, reward –'],
    ['finished', true, -0.1, [call(-0.3), call(0.2, true)], 'Ended: finished, reward −.100'],
    ['closed', false, 0.95, [call(0.05), call(0.9, true)], 'Solved, .950'],
    ['closed', false, null, [], 'Ended: session closed, reward –'],
    ['expired', false, 0.05, [call(0.05)], 'Ended: timed out, reward .0500'],
    ['lost', false, null, [], 'Ended: session lost, reward –'],
    ['failed', true, null, [], 'Ended: setup failed, reward –'],
  ] as const)('%s, live %s, total %s', (state, live, total_reward, calls, text) => {
    expect(episodeEnd({ state, live, total_reward }, calls)?.text ?? null).toBe(text);
  });
});

test('the task of a session can be played again, and the next one of its split', () => {
  const session = { environment: 'a/b', variant: 'v', task: { kind: 'index', split: 'train', index: 3 } };
  const choice = choiceOf(session)!;
  expect(choice).toEqual({ environment: 'a/b', variant: 'v', task: { split: 'train', index: 3 } });
  expect(nextChoice(choice, 5)).toMatchObject({ task: { split: 'train', index: 4 } });
  expect(nextChoice(choice, null)).toMatchObject({ task: { index: 4 } });
  expect(nextChoice(choice, 4)).toBe('This is the last task of the split');
  const custom = choiceOf({ ...session, task: { kind: 'spec', spec: { seed: 1 } } })!;
  expect(custom.task).toEqual({ spec: '{"seed":1}' });
  expect(nextChoice(custom, 5)).toBe('A custom task has no next task');
  expect(choiceOf({ ...session, task: { kind: 'none' } })).toBeNull();
});
