/**
 * Rollouts of one run in the order of their arrival, as an SQL subquery of columns of `rollouts` or `rollout_heads`. `run`, `after` and `limit` are SQL.
 *
 * `run_seq = x ORDER BY seq LIMIT n` has two more plans, which PostgreSQL prefers when it takes the run for larger or smaller than it is: to walk the primary
 * key over the rollouts of all runs, and to read and sort the whole run. A comparison with one bound has none of them.
 * Plan: Index Scan using the index of (run_seq, seq) from its place, at most `limit` rows.
 */
export const oldestOfRun = (run: string, after: string, limit: string | number, table = 'rollouts') =>
  `(SELECT * FROM (SELECT * FROM ${table} WHERE (run_seq, seq) > (${run}, ${after}) ORDER BY run_seq, seq LIMIT ${limit}) o WHERE o.run_seq = ${run})`;

/** The newest first. */
export const newestOfRun = (run: string, limit: string | number) =>
  `(SELECT * FROM (SELECT * FROM rollouts WHERE (run_seq, seq) <= (${run}, 9223372036854775807) ORDER BY run_seq DESC, seq DESC LIMIT ${limit}) n WHERE n.run_seq = ${run})`;
