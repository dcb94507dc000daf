/** Rows of the table: `ours` is the figure, in `unit`; `most` or `least` its goal. A row without a goal is for comparison with later runs. */
export const shown = (name, value, unit) => ({ name, ours: value, unit });
export const atMost = (limit, name, value, unit) => ({ name, ours: value, unit, most: { value, limit, unit } });
export const atLeast = (limit, name, value, unit) => ({ name, ours: value, unit, least: { value, limit, unit } });

/** The smallest sample that is at least as large as the share `q` of all. */
export function quantile(values, q) {
  if (values.length === 0) throw new Error('a quantile of no samples');
  return values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * q) - 1)];
}
export const median = (values) => quantile(values, 0.5);
