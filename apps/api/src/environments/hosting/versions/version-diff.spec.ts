import { expect, test } from 'vitest';
import type { Probe } from '../probe/probe.ts';
import { type ComparedVersion, diffVersions } from './version-diff.ts';

const tool = (name: string, properties: object = {}, required: string[] = []) => ({
  name,
  description: `${name} it`,
  input_schema: { type: 'object', properties, required },
});
type Variants = NonNullable<ComparedVersion['discovery']>['variants'];
const variant = (tools: object[], splits: Record<string, number | null>, name = 'game'): Variants[number] =>
  ({
    name,
    is_default: true,
    splits: Object.entries(splits).map(([split, num_tasks]) => ({ name: split, type: 'train', num_tasks })),
    tools: { tools },
  }) as never;
const version = (number: number, variants: Variants, probe: Partial<Probe> | null = null): ComparedVersion => ({
  number,
  discovery: { variants, discovered_at: '' },
  probe: probe && { variant: 'game', split: 'train', prompt: '', call: null, rewards: [], tasks: [], ...probe },
});

test('equal versions have no differences', () => {
  const one = version(1, [variant([tool('move')], { train: 3 })], { prompt: 'p', rewards: [1] });
  expect(diffVersions(one, { ...one, number: 2 })).toEqual({
    from: 1,
    to: 2,
    tools: [],
    tasks: [],
    prompt: null,
    rewards: null,
    breaking: [],
  });
});

test('names what breaks callers', () => {
  const from = version(1, [variant([tool('move', { to: { type: 'string' } }), tool('quit')], { train: 10, test: 5 })]);
  const to = version(2, [variant([tool('move', { to: { type: 'integer' }, by: {} }, ['by']), tool('wait')], { train: 8, extra: 1 })]);
  expect(diffVersions(from, to)).toMatchObject({
    tools: [
      {
        name: 'move',
        change: 'changed',
        detail: 'the type of argument "to" changed from string to integer; required argument "by" was added',
      },
      { name: 'quit', change: 'removed' },
      { name: 'wait', change: 'added', detail: 'wait it' },
    ],
    tasks: [
      { name: 'train', change: 'changed', detail: '10 tasks, now 8 tasks' },
      { name: 'test', change: 'removed', detail: '5 tasks' },
      { name: 'extra', change: 'added', detail: '1 task' },
    ],
    breaking: [
      'Tool "move": the type of argument "to" changed from string to integer.',
      'Tool "move": required argument "by" was added.',
      'The tool "quit" was removed.',
      'The split "train" has 8 tasks instead of 10.',
      'The split "test" was removed.',
    ],
  });
});

test('a removed variant breaks callers, an added one does not', () => {
  const from = version(1, [variant([tool('move')], { train: 1 }, 'old'), variant([], { train: 1 })]);
  const to = version(2, [variant([], { train: 1 }), variant([tool('move')], { train: 1 }, 'new')]);
  const { tools, breaking } = diffVersions(from, to);
  expect(tools.map(({ name, change }) => `${change} ${name}`)).toEqual(['removed old/move', 'added new/move']);
  expect(breaking).toEqual([
    'The environment "old" was removed.',
    'The tool "old/move" was removed.',
    'The split "old/train" was removed.',
  ]);
});

test('shows other prompts, rewards and tasks of the probe', () => {
  const tasks = (digest: string) => [{ variant: 'game', split: 'train', num_tasks: 1, digest }];
  const from = version(1, [variant([], { train: 1 })], { prompt: 'a', rewards: [0], tasks: tasks('x') });
  const to = version(2, [variant([], { train: 1 })], { prompt: 'b', rewards: [1], tasks: tasks('y') });
  expect(diffVersions(from, to)).toMatchObject({
    prompt: { from: 'a', to: 'b' },
    rewards: { from: [0], to: [1] },
    tasks: [{ name: 'train', change: 'changed', detail: '1 task, some of the first of them differ' }],
    breaking: [],
  });
});

test('a version that was never reached has nothing to compare', () => {
  const known = version(1, [variant([tool('move')], { train: 1 })], { prompt: 'a' });
  expect(diffVersions(known, { number: 2, discovery: known.discovery, probe: null })).toMatchObject({
    prompt: null,
    rewards: null,
    tasks: [],
  });
});
