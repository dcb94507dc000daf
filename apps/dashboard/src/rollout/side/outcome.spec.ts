import { expect, test } from 'vitest';
import { goldenAnswerOf, graderTextOf, relatedRolloutsOf, rewardComponentsOf } from './outcome.ts';

const upload = (fields: object) =>
  ({ metadata: {}, rollout_info: {}, run_info: {}, task_spec: null, ...fields }) as Parameters<typeof goldenAnswerOf>[0];
const parent = '00000000-0000-4000-8000-000000000bb8';

test('reward components are the numbers of the first field that has an object, including zeros', () => {
  expect(rewardComponentsOf(upload({ metadata: { reward_components: { correct: 0, format: 0.1, note: 'x' } } }))).toEqual([
    ['correct', 0],
    ['format', 0.1],
  ]);
  expect(rewardComponentsOf(upload({ metadata: { rewards: [1, 2] } }))).toEqual([]);
  expect(rewardComponentsOf(upload({ metadata: { scores: 'text' } }))).toEqual([]);
});

test('the golden answer comes from the task before the metadata; a value that is no text becomes JSON', () => {
  expect(goldenAnswerOf(upload({ task_spec: { question: '?', answer: 'Eve' }, metadata: { answer: 'Ada' } }))).toBe('Eve');
  expect(goldenAnswerOf(upload({ task_spec: { ground_truth: ['a', 1] } }))).toBe('["a",1]');
  expect(goldenAnswerOf(upload({ task_spec: { answer: '' } }))).toBeNull();
  expect(goldenAnswerOf(upload({ task_spec: Object.create({ answer: 'inherited' }) as object }))).toBeNull();
  expect(graderTextOf(upload({ metadata: { grader: { score: 0 } } }))).toBe('{"score":0}');
});

test('related rollouts are the parent, the branch and the resumed rollout; only an id gives a link', () => {
  expect(relatedRolloutsOf(upload({ metadata: { parent_rollout: parent.toUpperCase(), resumed_from_rollout_id: 'trial_2' } }))).toEqual([
    { relation: 'Sub-agent of', name: parent.toUpperCase(), id: parent },
    { relation: 'Resumed from', name: 'trial_2', id: null },
  ]);
  expect(relatedRolloutsOf(upload({ metadata: { branch_of: parent } }))).toEqual([{ relation: 'Branch of', name: parent, id: parent }]);
  expect(relatedRolloutsOf(upload({ metadata: { parent_rollout: 7 } }))).toEqual([]);
});
