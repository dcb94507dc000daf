/**
 * Standard deviation (ddof 1) of group `g` from its sums; null below two scored rollouts. It is 0 within the tolerance of zero variance
 * (docs/reference/metrics.md#canonical-metrics), because sums of equal rewards leave a remainder.
 */
export const GROUP_STD = `CASE WHEN g.scored < 2 THEN NULL WHEN g.max - g.min <= 1e-6 THEN 0
  ELSE sqrt(GREATEST((g.sum_squares - g.sum * g.sum / g.scored) / (g.scored - 1), 0)) END`;
