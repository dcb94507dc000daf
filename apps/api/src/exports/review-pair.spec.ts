import { expect, it } from 'vitest';
import { pairOfReview } from './review-pair.ts';

const reviewOf = (...choices: string[]) => ({
  queue_id: 'q',
  queue: 'queue',
  queue_query: '',
  queue_seed: 1,
  answers: choices.map((choice, at) => ({ reviewer: `r${at}`, choice, comment: null, at: '' })),
});

it('chooses what most reviewers prefer, and says what each of them said', () => {
  const pair = pairOfReview('left', 'right', reviewOf('b', 'tie', 'b', 'a'))!;
  expect(pair).toMatchObject({ chosen: 'right', rejected: 'left' });
  expect(pair.review!.answers.map(({ choice }) => choice)).toEqual(['chosen', 'tied', 'chosen', 'rejected']);
  expect(pairOfReview('left', 'right', reviewOf('a'))).toMatchObject({ chosen: 'left', rejected: 'right' });
});

it('is no pair if reviewers do not prefer one', () => {
  expect(pairOfReview('left', 'right', reviewOf('a', 'b'))).toBeNull();
  expect(pairOfReview('left', 'right', reviewOf('tie'))).toBeNull();
});
