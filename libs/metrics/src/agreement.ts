import type { Interval } from './intervals.ts';
import { binomial, uniform } from './random.ts';
import { percentile } from './summary.ts';

/** Items whose answers have the same counts. */
export interface AnswerPattern {
  /** Answers of one item by their value. */
  counts: Readonly<Record<string, number>>;
  /** Number of such items. */
  items: number;
}

export interface Agreement {
  /** null: no item has two answers, or all answers are equal, so that chance agreement is complete too. */
  alpha: number | null;
  /** Items with two answers or more. Others have nothing to compare and do not count. */
  items: number;
}

/**
 * Krippendorff's alpha for nominal values: 1 − D_o / D_e, where D_o is the disagreement within items and D_e the one expected if all
 * answers were dealt to items at random (Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011, section C). Any number of
 * answers per item; missing ones need no value.
 */
export function krippendorffAlpha(patterns: readonly AnswerPattern[]): Agreement {
  const units = patterns.map(unitOf).filter(({ answers }) => answers >= 2);
  return {
    alpha: alphaOf(
      units,
      units.map(({ items }) => items),
    ),
    items: units.reduce((sum, { items }) => sum + items, 0),
  };
}

const DRAWS = 1_000;
const MIN_DRAWS = 100;
const SEED = 42;
/** Patterns drawn in all draws together: about 50 ms. With more patterns there are fewer draws. */
const MAX_DRAWN = 300_000;

/**
 * 95 % percentile interval of alpha, items drawn with replacement (Zapf et al. 2016, BMC Medical Research Methodology 16:93). The same for
 * the same answers. Draws in which all answers are equal are left out. null for fewer than two items with two answers.
 */
export function alphaInterval(patterns: readonly AnswerPattern[]): Interval | null {
  const units = patterns.map(unitOf).filter(({ answers }) => answers >= 2);
  const total = units.reduce((sum, { items }) => sum + items, 0);
  if (total < 2) return null;
  const random = uniform(SEED);
  const draws = Math.min(DRAWS, Math.max(MIN_DRAWS, Math.floor(MAX_DRAWN / units.length)));
  const alphas: number[] = [];
  for (let draw = 0; draw < draws; draw += 1) {
    const alpha = alphaOf(units, drawn(units, total, random));
    if (alpha !== null) alphas.push(alpha);
  }
  return alphas.length === 0 ? null : { low: percentile(alphas, 0.025)!, high: percentile(alphas, 0.975)! };
}

interface Unit {
  counts: [value: string, count: number][];
  answers: number;
  items: number;
}

function unitOf({ counts, items }: AnswerPattern): Unit {
  const entries = Object.entries(counts);
  return { counts: entries, answers: entries.reduce((sum, [, count]) => sum + count, 0), items };
}

function alphaOf(units: readonly Unit[], weights: readonly number[]): number | null {
  const totals = new Map<string, number>();
  let answers = 0;
  let disagreement = 0;
  for (const [at, unit] of units.entries()) {
    const weight = weights[at]!;
    if (weight === 0) continue;
    answers += weight * unit.answers;
    let equal = 0;
    for (const [value, count] of unit.counts) {
      equal += count * count;
      totals.set(value, (totals.get(value) ?? 0) + weight * count);
    }
    disagreement += (weight * (unit.answers ** 2 - equal)) / (unit.answers - 1);
  }
  let expected = answers ** 2;
  for (const count of totals.values()) expected -= count ** 2;
  return expected === 0 ? null : 1 - ((answers - 1) * disagreement) / expected;
}

/** How often each pattern occurs in `total` items drawn with replacement: a multinomial as a row of binomials. */
function drawn(units: readonly Unit[], total: number, random: () => number): number[] {
  let left = total;
  let rest = total;
  return units.map(({ items }) => {
    const taken = left === 0 ? 0 : binomial(left, Math.min(1, items / rest), random);
    left -= taken;
    rest -= items;
    return taken;
  });
}
