import {
  type Interval,
  metric,
  passAtKOfGroup,
  passIntervals,
  powersOfTwo,
  type SampleSums,
  studentIntervalOfSums,
} from '@palestra/metrics';
import type { Lens } from '@palestra/protocol';
import type { GroupClass } from './run-summary.sql.ts';
import { type Percentiles, PERCENTILES } from './reward-percentiles.service.ts';
import { type FigureSet, figuresOf } from '../../store/figures/step-figures.service.ts';
import type { StepRow } from '../../store/figures/step-figures.sql.ts';

export interface Kpi {
  key: string;
  label: string;
  value: number | null;
  denominator: number;
  of: number;
  low: number | null;
  high: number | null;
  /** Steps that went in. */
  steps: number;
  note: string | null;
}

/** Of these the figure of two steps does not follow from that figure of each. */
const NOT_MERGED = /^(reward_p\d+|pass@.*|avg@n_ci_.*)$/;

/**
 * Figures of several steps as one: weighted by their denominators, which is exact for means and rates of rollouts, groups or results.
 * A trainer prints a figure a step, so that of several steps is our mean of what it printed, and says so.
 */
export function mergeFigures(rows: readonly StepRow[], set: FigureSet): Kpi[] {
  const keys = new Set<string>();
  for (const row of rows) for (const key of Object.keys(figuresOf(row, set) ?? {})) keys.add(key);
  return [...keys]
    .filter(
      (key) => set.lens !== 'canonical' || rows.length === 1 || !NOT_MERGED.test(key) || (set.den !== 'scored' && key.startsWith('pass@')),
    )
    .map((key) => mergeKey(rows, set, key));
}

/** An environment has a row for each of its variants. */
export const stepsIn = (rows: readonly Pick<StepRow, 'step'>[]): number => new Set(rows.map(({ step }) => step)).size;

function mergeKey(rows: readonly StepRow[], set: FigureSet, key: string): Kpi {
  const found = rows.flatMap((row) => {
    const figure = figuresOf(row, set)?.[key] ?? null;
    return figure === null ? [] : { step: row.step, figure };
  });
  const figures = found.map(({ figure }) => figure);
  const isCounted = ([value, denominator]: (typeof figures)[number]) => value !== null && denominator > 0;
  const counted = figures.filter(isCounted);
  const total = (at: 1 | 2) => figures.reduce((sum, figure) => sum + figure[at], 0);
  const weight = counted.reduce((sum, [, denominator]) => sum + denominator, 0);
  const values = counted.map(([value]) => value!);
  const pooled = set.lens === 'canonical' && key === 'reward_std' && rows.length > 1;
  const value = pooled ? pooledStd(rows, set) : weight === 0 ? null : reduceOf(key, values, counted, weight);
  const several = set.lens !== 'canonical' && counted.length > 1 ? `mean over ${counted.length} steps, weighted` : null;
  const notes = [several, counted.length === 1 ? (counted[0]![3] ?? null) : null, figures.length === 0 ? 'not in the upload' : null];
  const note = notes.filter((one) => one !== null).join('; ') || null;
  return {
    key,
    label: metric(set.lens, key)?.label ?? key,
    value,
    denominator: total(1),
    of: total(2),
    low: null,
    high: null,
    steps: stepsIn(found.filter(({ figure }) => isCounted(figure))),
    note,
  };
}

/** Counts and shares that hold how many there are of the whole. */
function reduceOf(
  key: string,
  values: readonly number[],
  counted: readonly (readonly [number | null, number, ...unknown[]])[],
  weight: number,
): number {
  if (key === 'reward_min') return values.reduce((a, b) => Math.min(a, b));
  if (key === 'reward_max') return values.reduce((a, b) => Math.max(a, b));
  if (['scored', 'effective', 'groups'].includes(key)) return values.reduce((a, b) => a + b, 0);
  return counted.reduce((sum, [value, denominator]) => sum + value! * denominator, 0) / weight;
}

/** The deviation (ddof 1) of all rewards together, from each step's number, mean and deviation. */
function pooledStd(rows: readonly StepRow[], set: FigureSet): number | null {
  const parts = rows.flatMap((row) => {
    const figures = figuresOf(row, set);
    const [mean, count] = figures?.['reward_mean'] ?? [null, 0];
    return mean === null ? [] : { mean, count, std: figures?.['reward_std']?.[0] ?? 0 };
  });
  const count = parts.reduce((total, part) => total + part.count, 0);
  if (count < 2) return null;
  const mean = parts.reduce((total, part) => total + part.mean * part.count, 0) / count;
  const squares = parts.reduce((total, part) => total + part.std ** 2 * (part.count - 1) + part.count * (part.mean - mean) ** 2, 0);
  return Math.sqrt(squares / (count - 1));
}

/** pass@k for every power of two, with its interval, from classes of groups: exact for any set of them. */
export function passKpis(classes: readonly GroupClass[], lens: Lens = 'canonical'): Kpi[] {
  const largest = classes.reduce((most, { scored }) => Math.max(most, scored), 0);
  const all = classes.reduce((total, { groups }) => total + groups, 0);
  const ks = powersOfTwo(largest);
  const counted = classes.map(({ scored, successes, groups }) => ({ n: scored, c: successes, groups }));
  const intervals = passIntervals(counted, ks);
  return ks.map((k) => {
    const eligible = classes.filter(({ scored }) => scored >= k);
    const groups = eligible.reduce((total, one) => total + one.groups, 0);
    const sum = eligible.reduce((total, one) => total + one.groups * passAtKOfGroup(one.scored, one.successes, k)!, 0);
    const label = metric(lens, `pass@${k}`)?.label ?? '';
    return {
      key: `pass@${k}`,
      label,
      value: groups === 0 ? null : sum / groups,
      denominator: groups,
      of: all,
      low: intervals.get(k)?.low ?? null,
      high: intervals.get(k)?.high ?? null,
      steps: 0,
      note: intervals.get(k) ? 'interval: group bootstrap, 1000 draws' : null,
    };
  });
}

/** Percentiles of the rewards of several steps together. */
export function percentileKpis(rows: readonly StepRow[], set: FigureSet, { values, note }: Percentiles): Kpi[] {
  const [denominator, of] = [1, 2].map((at) =>
    rows.reduce((total, row) => total + ((figuresOf(row, set)?.['reward_mean']?.[at] as number | undefined) ?? 0), 0),
  ) as [number, number];
  const nulls = set.den === 'all' ? rows.reduce((total, row) => total + row.rollouts - row.scored, 0) : 0;
  const notes = [note, nulls > 0 ? `null as 0 (${nulls} of ${of})` : null].filter((one) => one !== null);
  return PERCENTILES.map((p, at) => ({
    key: `reward_p${p}`,
    label: metric('canonical', `reward_p${p}`)?.label ?? '',
    value: values[at] ?? null,
    denominator,
    of,
    low: null,
    high: null,
    steps: stepsIn(rows),
    note: notes.join('; ') || null,
  }));
}

/** Student-t on the group means of these classes. */
export function intervalOfMeans(classes: readonly GroupClass[]): Interval | null {
  const scored = classes.filter((one) => one.scored > 0);
  const sums: SampleSums = { count: 0, sum: 0, sumOfSquares: 0 };
  for (const { groups, sum_means, sum_squared_means } of scored) {
    sums.count += groups;
    sums.sum += sum_means;
    sums.sumOfSquares += sum_squared_means;
  }
  return studentIntervalOfSums(sums);
}
