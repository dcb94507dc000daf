import {
  type Figure,
  type Interval,
  metric,
  mostCommonSize,
  passAtKOfGroup,
  passIntervals,
  passSizes,
  type SampleSums,
  studentIntervalOfSums,
} from '@palestra/metrics';
import type { Lens } from '@palestra/protocol';
import { figureKeys, figureOf, type FigureSet } from '../../store/figures/step-figures.service.ts';
import type { StepRow } from '../../store/figures/step-figures.sql.ts';
import { nullsOf, type Percentiles, PERCENTILES } from './reward-percentiles.service.ts';
import type { GroupClass } from './run-summary.sql.ts';

export interface Kpi {
  key: string;
  label: string;
  value: number | null;
  denominator: number;
  of: number;
  low: number | null;
  high: number | null;
  /** Number of steps with a value. */
  steps: number;
  note: string | null;
}

/** Figures of several steps that cannot be computed from the figures of each. */
const NOT_MERGED = /^(reward_p\d+|pass@.*|avg@n_ci_.*)$/;

/**
 * Merges the figures of several steps, weighted by their denominators. This is exact for means and rates of rollouts, groups or results.
 * A trainer prints one figure per step, so over several steps its figure is our mean, and the note says so.
 */
export function mergeFigures(rows: readonly StepRow[], set: FigureSet): Kpi[] {
  const keys = new Set(rows.flatMap((row) => figureKeys(row, set) ?? []));
  const isMerged = (key: string) =>
    set.lens !== 'canonical' || rows.length === 1 || !NOT_MERGED.test(key) || (set.den !== 'effective' && key.startsWith('pass@'));
  return [...keys].filter(isMerged).map((key) => mergeKey(rows, set, key));
}

/** An environment has a row for each of its variants. */
export const countSteps = (rows: readonly Pick<StepRow, 'step'>[]): number => new Set(rows.map(({ step }) => step)).size;

type CountedFigure = Figure & { value: number };
const isCounted = (figure: Figure): figure is CountedFigure => figure.value !== null && figure.denominator > 0;
const sumOf = <T>(items: readonly T[], valueOf: (item: T) => number): number => items.reduce((total, item) => total + valueOf(item), 0);

function mergeKey(rows: readonly StepRow[], set: FigureSet, key: string): Kpi {
  const found = rows.flatMap((row) => {
    const figure = figureOf(row, set, key);
    return figure === null ? [] : { step: row.step, figure };
  });
  const figures = found.map(({ figure }) => figure);
  const counted = figures.filter(isCounted);
  const isPooled = set.lens === 'canonical' && key === 'reward_std' && rows.length > 1;
  const notes = [
    set.lens !== 'canonical' && counted.length > 1 ? `mean over ${counted.length} steps, weighted` : null,
    counted.length === 1 ? (counted[0]!.note ?? null) : null,
    figures.length === 0 ? 'not in the upload' : null,
  ];
  return {
    key,
    label: metric(set.lens, key)?.label ?? key,
    value: isPooled ? pooledStd(rows, set) : mergeValues(key, counted),
    denominator: sumOf(figures, ({ denominator }) => denominator),
    of: sumOf(figures, ({ of }) => of),
    low: null,
    high: null,
    steps: countSteps(found.filter(({ figure }) => isCounted(figure))),
    note: notes.filter((note) => note !== null).join('; ') || null,
  };
}

function mergeValues(key: string, figures: readonly CountedFigure[]): number | null {
  if (figures.length === 0) return null;
  const values = figures.map(({ value }) => value);
  if (key === 'reward_min') return values.reduce((a, b) => Math.min(a, b));
  if (key === 'reward_max') return values.reduce((a, b) => Math.max(a, b));
  if (['scored', 'effective', 'groups'].includes(key)) return sumOf(values, (value) => value);
  return sumOf(figures, ({ value, denominator }) => value * denominator) / sumOf(figures, ({ denominator }) => denominator);
}

/** The deviation (ddof 1) of all rewards together, from each step's number, mean and deviation. */
function pooledStd(rows: readonly StepRow[], set: FigureSet): number | null {
  const parts = rows.flatMap((row) => {
    const mean = figureOf(row, set, 'reward_mean');
    const std = figureOf(row, set, 'reward_std')?.value ?? 0;
    return mean?.value == null ? [] : { mean: mean.value, count: mean.denominator, std };
  });
  const count = sumOf(parts, (part) => part.count);
  if (count < 2) return null;
  const mean = sumOf(parts, (part) => part.mean * part.count) / count;
  const squares = sumOf(parts, (part) => part.std ** 2 * (part.count - 1) + part.count * (part.mean - mean) ** 2);
  return Math.sqrt(squares / (count - 1));
}

/** The size that most groups of these steps have, and how many of all groups that are; null without groups. */
export function groupSizeOf(rows: readonly Pick<StepRow, 'figures'>[]): { n: number; groups: number; of: number } | null {
  const classes = rows.flatMap(({ figures }) => figures.group_classes ?? []);
  if (classes.length === 0) return null;
  const n = mostCommonSize(classes.map(([size, , , groups]) => [size, groups]));
  const count = (some: typeof classes) => sumOf(some, ([, , , groups]) => groups);
  return { n, groups: count(classes.filter(([size]) => size === n)), of: count(classes) };
}

/** pass@k for every power of two and the most common group size, with its interval, from classes of groups: exact for any set of steps. */
export function passKpis(classes: readonly GroupClass[], common: number, lens: Lens = 'canonical'): Kpi[] {
  const largest = classes.reduce((most, { scored }) => Math.max(most, scored), 0);
  const all = sumOf(classes, ({ groups }) => groups);
  const ks = passSizes(largest, common);
  const counted = classes.map(({ scored, successes, groups }) => ({ n: scored, c: successes, groups }));
  const intervals = passIntervals(counted, ks);
  return ks.map((k) => {
    const eligible = classes.filter(({ scored }) => scored >= k);
    const groups = sumOf(eligible, (one) => one.groups);
    const sum = sumOf(eligible, (one) => one.groups * passAtKOfGroup(one.scored, one.successes, k)!);
    const interval = intervals.get(k);
    return {
      key: `pass@${k}`,
      label: metric(lens, `pass@${k}`)?.label ?? '',
      value: groups === 0 ? null : sum / groups,
      denominator: groups,
      of: all,
      low: interval?.low ?? null,
      high: interval?.high ?? null,
      steps: 0,
      note: interval ? 'interval: group bootstrap, 1000 draws' : null,
    };
  });
}

/** Percentiles of the rewards of several steps together. */
export function percentileKpis(rows: readonly StepRow[], set: FigureSet, { values, note }: Percentiles): Kpi[] {
  const means = rows.map((row) => figureOf(row, set, 'reward_mean'));
  const denominator = sumOf(means, (mean) => mean?.denominator ?? 0);
  const of = sumOf(means, (mean) => mean?.of ?? 0);
  const nulls = set.den === 'all' ? sumOf(rows, nullsOf) : 0;
  const notes = [note, nulls > 0 ? `null as 0 (${nulls} of ${of})` : null].filter((one) => one !== null);
  return PERCENTILES.map((p, at) => ({
    key: `reward_p${p}`,
    label: metric('canonical', `reward_p${p}`)?.label ?? '',
    value: values[at] ?? null,
    denominator,
    of,
    low: null,
    high: null,
    steps: countSteps(rows),
    note: notes.join('; ') || null,
  }));
}

/** Student-t on the group means of these classes. */
export function intervalOfMeans(classes: readonly GroupClass[]): Interval | null {
  const scored = classes.filter((one) => one.scored > 0);
  const sums: SampleSums = {
    count: sumOf(scored, ({ groups }) => groups),
    sum: sumOf(scored, ({ sum_means }) => sum_means),
    sumOfSquares: sumOf(scored, ({ sum_squared_means }) => sum_squared_means),
  };
  return studentIntervalOfSums(sums);
}
