import { expect, test } from 'vitest';
import { diffLines } from './diff-lines.ts';

const same = { from: 2, to: 3, tools: [], tasks: [], prompt: null, rewards: null, breaking: [] };
const lines = (diff: Partial<Parameters<typeof diffLines>[1]>) => diffLines({}, { ...same, ...diff });

test('what breaks clients comes first', () => {
  expect(
    lines({
      tools: [
        { name: 'hint', change: 'added', detail: '' },
        { name: 'guess', change: 'changed', detail: 'argument number is required' },
      ],
      tasks: [{ name: 'train', change: 'removed', detail: '900 tasks' }],
      rewards: { from: [0, 1], to: [null] },
      breaking: ['The tool guess has another argument.'],
    }),
  ).toEqual([
    'Version 2 to 3',
    'breaks clients',
    '  ! The tool guess has another argument.',
    'tools',
    '  + hint',
    '  ~ guess: argument number is required',
    'tasks',
    '  - train: 900 tasks',
    'rewards',
    '  - 0, 1',
    '  + none',
  ]);
  expect(lines({})).toEqual(['Version 2 to 3', 'no differences in tools, tasks, prompt and rewards']);
});

test('a prompt is compared by lines', () => {
  expect(lines({ prompt: { from: 'Guess.\nTen tries.', to: 'Guess.\nNine tries.' } }).slice(1)).toEqual([
    'prompt',
    '  - Ten tries.',
    '  + Nine tries.',
  ]);
  expect(lines({ prompt: { from: 'a\nb', to: 'b\na' } }).slice(2)).toEqual(['  - a', '  - b', '  + b', '  + a']);
});

test('text of an environment cannot control the terminal', () => {
  const hostile = 'a\u001b[2Jb\u009b';
  const shown = lines({
    breaking: [hostile],
    prompt: { from: hostile, to: '' },
    tools: [{ name: hostile, change: 'added', detail: hostile }],
  });
  // oxlint-disable-next-line no-control-regex -- these characters must not be there
  expect(shown.join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
});
