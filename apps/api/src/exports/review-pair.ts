import type { PairOf, ReviewOrigin } from '@palestra/exports';

/** The pair that most reviewers see. Ties count for neither side; null if as many prefer the one as the other. */
export function pairOfReview<Row>(a: Row, b: Row, review: ReviewOrigin): PairOf<Row> | null {
  const votes = (side: string) => review.answers.filter(({ choice }) => choice === side).length;
  const better = Math.sign(votes('a') - votes('b'));
  if (better === 0) return null;
  const best = better > 0 ? 'a' : 'b';
  const answers = review.answers.map((answer) => ({
    ...answer,
    choice: answer.choice === 'tie' ? 'tied' : answer.choice === best ? 'chosen' : 'rejected',
  }));
  return { chosen: best === 'a' ? a : b, rejected: best === 'a' ? b : a, group_n: null, review: { ...review, answers } };
}
