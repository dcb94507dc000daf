import { describe, expect, test } from 'vitest';
import type { TaskFigures } from '../data/environments.ts';
import { anthropicTool, openAiTool } from './tool-formats.ts';
import { libraryCommands, nameOfLibraryId, pythonLibraries } from './python-libraries.ts';
import { difficultyOf, MOST_TASKS, taskRows, withoutSplit } from './difficulty.ts';

const chars = { mean: 1, p1: 1, p10: 1, p25: 1, p50: 1, p75: 1, p90: 1, p99: 1 };
const figures = (task_index: number, avg_reward: number, num_rollouts: number, more: Partial<TaskFigures> = {}): TaskFigures => ({
  task_index,
  avg_reward,
  min_reward: avg_reward,
  max_reward: avg_reward,
  num_rollouts,
  num_solved: Math.round(avg_reward * num_rollouts),
  response_chars: chars,
  split: 'train',
  variant: null,
  ...more,
});

describe('commands for a Python library', () => {
  const [library] = pythonLibraries;
  test('install, and register under a valid name', () => {
    expect(libraryCommands(library!, 'leg_counting', 'https://palestra.test')?.split('\n')).toEqual([
      'python3 -m pip install "palestra[reasoning-gym]"',
      'export PALESTRA_URL=https://palestra.test PALESTRA_API_KEY=…',
      'npx palestra env push reasoning-gym:leg_counting --name leg-counting --detach',
    ]);
    expect(['ab', '2048-v0', 'A'.repeat(90), '--'].map((id) => nameOfLibraryId(id))).toEqual([
      'ab-env',
      '2048-v0',
      'a'.repeat(64),
      'env-env',
    ]);
  });

  test.each(['', 'a b', '$(reboot)', 'a;b', '`a`', '-a', 'a\nb'])('are not made of %j', (id) => {
    expect(libraryCommands(library!, id, 'https://palestra.test')).toBeNull();
  });
});

describe('difficulty', () => {
  const rows = [
    figures(0, 1, 3),
    figures(0, 0, 1, { variant: 'main' }),
    figures(1, 0, 4),
    figures(2, 1, 2),
    figures(2, 1, 9, { split: 'test' }),
    figures(3, 0.5, 9, { variant: 'other' }),
    figures(4, 0.5, 7, { split: null }),
  ];
  const found = difficultyOf(rows, { split: 'train', variant: 'main', isDefault: true });

  test('belongs to one split and variant, and weights rows of a task by their rollouts', () => {
    expect([...found]).toEqual([
      [0, { n: 4, solved: 3, avg: 0.75, min: 0, max: 1 }],
      [1, { n: 4, solved: 0, avg: 0, min: 0, max: 0 }],
      [2, { n: 2, solved: 2, avg: 1, min: 1, max: 1 }],
    ]);
    expect([...difficultyOf(rows, { split: 'train', variant: 'other', isDefault: false }).keys()]).toEqual([3]);
    expect(withoutSplit(rows)).toBe(7);
  });

  test('orders tasks with those without rollouts last, and finds tasks that are sometimes solved', () => {
    const order = (sort: 'avg' | 'index', order: 'asc' | 'desc', mixed = false) =>
      taskRows(5, found, { sort, order, mixed }).map(({ index }) => index);
    expect(order('avg', 'asc')).toEqual([1, 0, 2, 3, 4]);
    expect(order('avg', 'desc')).toEqual([2, 0, 1, 3, 4]);
    expect(order('index', 'desc')).toEqual([4, 3, 2, 1, 0]);
    expect(order('index', 'asc', true)).toEqual([0]);
  });
  test('lists the first tasks of a split with more than a list can hold, and all with rollouts', () => {
    const far = difficultyOf([figures(4, 1, 2), figures(7e12, 0.5, 4)], { split: 'train', variant: 'v', isDefault: true });
    const rows = taskRows(1e13, far, { sort: 'index', order: 'desc', mixed: false });
    expect(rows.length).toBe(MOST_TASKS + 1);
    expect(rows.slice(0, 2).map(({ index }) => index)).toEqual([7e12, MOST_TASKS - 1]);
    expect(taskRows(1e13, far, { sort: 'avg', order: 'asc', mixed: true }).map(({ index }) => index)).toEqual([7e12]);
  });
});

test('tools have the formats of the model APIs', () => {
  const tool = { name: 'scan', description: 'Looks around.', input_schema: null };
  const empty = { type: 'object', properties: {} };
  expect(openAiTool(tool)).toEqual({ type: 'function', function: { name: 'scan', description: 'Looks around.', parameters: empty } });
  expect(anthropicTool(tool)).toEqual({ name: 'scan', description: 'Looks around.', input_schema: empty });
});
