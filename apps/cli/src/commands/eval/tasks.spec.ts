import { expect, test } from 'vitest';
import { drawTasks } from './draw-tasks.ts';
import { parseEvalMetric } from './metrics.ts';
import { resumeLine } from './resume-line.ts';
import { parseTasks } from './tasks.ts';

test.each([
  ['50', { count: 50 }],
  ['7..7', { indexes: [7] }],
  ['10..12, 3,3,11', { indexes: [3, 10, 11, 12] }],
])('%j are tasks', (text, expected) => {
  expect(parseTasks(text)).toEqual(expected);
});

test.each(['', '0', '-1', '1.5', '3..1', '1,', ',', '1..', 'all', '1..2..3', '99999999', '1e3'])('%j is refused', (text) => {
  expect(() => parseTasks(text)).toThrow(/^Invalid tasks /);
});

test('a number of tasks are drawn from all levels, the same each time', () => {
  const drawn = drawTasks(200, 40);
  expect(drawn).toEqual(drawTasks(200, 40));
  expect(drawn).toEqual([...new Set(drawn)].toSorted((a, b) => a - b));
  // Levels alternate with a period of five: evenly spread tasks would be of one level.
  expect(new Set(drawn.map((index) => index % 5)).size).toBe(5);
  expect(drawn).toEqual(expect.arrayContaining(drawTasks(200, 20)));
  expect(drawTasks(3, 100)).toEqual([0, 1, 2]);
});

test('conditions name figures of an evaluation', () => {
  expect(['reward_mean', 'success', 'failed', 'pass_at_16'].map(parseEvalMetric)).toEqual([
    'reward_mean',
    'success',
    'failed',
    'pass_at_16',
  ]);
  for (const name of ['turns', 'pass_at_', 'pass_at_0', 'pass_at_1x']) expect(() => parseEvalMetric(name)).toThrow(/^Unknown metric /);
});

test('the command line that continues has the name of the run, once', () => {
  const words = ['eval', 'acme/x', '--extra-body', `{"a": "it's"}`];
  const line = String.raw`palestra eval acme/x --extra-body '{"a": "it'\''s"}' --run r-1 --resume`;
  expect(resumeLine(words, 'r-1')).toBe(line);
  expect(resumeLine(['eval', 'acme/x', '--run=r-1', '--resume'], 'r-1')).toBe('palestra eval acme/x --run=r-1 --resume');
});
