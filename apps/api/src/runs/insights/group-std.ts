/**
 * Standard deviation (ddof 1) of a group from its sums, alias `g`; null below two scored rollouts. Sums leave a remainder where all rewards
 * are equal: within the tolerance of zero variance (dashboard.md 3.1) it is 0.
 */
export const GROUP_STD = `CASE WHEN g.scored < 2 THEN NULL WHEN g.max - g.min <= 1e-6 THEN 0
  ELSE sqrt(GREATEST((g.sum_squares - g.sum * g.sum / g.scored) / (g.scored - 1), 0)) END`;
