import { expect, test } from 'vitest';
import { componentsOf, goldenOf, graderTextOf, relativesOf } from './outcome.ts';

const said = (more: object) =>
  ({ metadata: {}, rollout_info: {}, run_info: {}, task_spec: null, ...more }) as Parameters<typeof goldenOf>[0];
const parent = '00000000-0000-4000-8000-000000000bb8';

test('components are the numbers of the first field that has some, zeros among them', () => {
  expect(componentsOf(said({ metadata: { reward_components: { correct: 0, format: 0.1, note: 'x' } } }))).toEqual([
    ['correct', 0],
    ['format', 0.1],
  ]);
  expect(componentsOf(said({ metadata: { rewards: [1, 2] } }))).toEqual([]);
  expect(componentsOf(said({ metadata: { scores: 'text' } }))).toEqual([]);
});

test('the golden answer is the task’s before the trainer’s; what is no text is written as JSON', () => {
  expect(goldenOf(said({ task_spec: { question: '?', answer: 'Eve' }, metadata: { answer: 'Ada' } }))).toBe('Eve');
  expect(goldenOf(said({ task_spec: { ground_truth: ['a', 1] } }))).toBe('["a",1]');
  expect(goldenOf(said({ task_spec: { answer: '' } }))).toBeNull();
  expect(goldenOf(said({ task_spec: Object.create({ answer: 'inherited' }) as object }))).toBeNull();
  expect(graderTextOf(said({ metadata: { grader: { score: 0 } } }))).toBe('{"score":0}');
});

test('a sub-agent names its parent and a resumed rollout the one before; only an id is a way there', () => {
  expect(relativesOf(said({ metadata: { parent_rollout: parent.toUpperCase(), resumed_from_rollout_id: 'trial_2' } }))).toEqual([
    { what: 'sub-agent of', name: parent.toUpperCase(), id: parent },
    { what: 'resumed from', name: 'trial_2', id: null },
  ]);
  expect(relativesOf(said({ metadata: { branch_of: parent } }))).toEqual([{ what: 'branch of', name: parent, id: parent }]);
  expect(relativesOf(said({ metadata: { parent_rollout: 7 } }))).toEqual([]);
});
