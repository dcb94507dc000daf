import { histogram, histogramEdges, mergeHistograms } from '@palestra/metrics';
import { describe, expect, test } from 'vitest';
import { binClauses, RAMP, rampLegend, rampOf, shownHeat } from './heat.ts';

/** Whether clauses such as `reward:>a reward:<=b` match a value. */
function finds(clauses: readonly string[], value: number): boolean {
  return clauses.every((clause) => {
    const [, operator, edge] = /^reward:(>=|<=|>|<)(-?[\d.e-]+)$/.exec(clause)!;
    const limit = Number(edge);
    return { '>=': value >= limit, '<=': value <= limit, '>': value > limit, '<': value < limit }[operator!];
  });
}

describe('clauses of a bin', () => {
  test.each([
    ['hundredths', Array.from({ length: 101 }, (_, i) => i / 100)],
    ['sums of hundredths', Array.from({ length: 120 }, (_, i) => 0.01 * i)],
    ['with negative ones', Array.from({ length: 401 }, (_, i) => (i - 200) / 100)],
    ['edges of bins and their neighbours', [0.28, 0.28000000000000003, 0.27999999999999997, 0.56, 0.58, 0.14, 1e-9, 0]],
  ])('match exactly the rewards that the API counted: %s', (_name, rewards) => {
    // The API merges the histograms of two steps.
    const half = Math.floor(rewards.length / 2);
    const merged = mergeHistograms(histogram(rewards.slice(0, half)), histogram(rewards.slice(half)));
    const whole = histogramEdges(merged);
    const { edges, counts } = shownHeat({ edges: whole, counts: [merged.counts] });
    const found = counts[0]!.map((_count, bin) => {
      const clauses = binClauses('reward', whole, edges[bin]!, edges[bin + 1]!);
      return rewards.filter((reward) => finds(clauses, reward)).length;
    });
    expect(found).toEqual(counts[0]);
    expect(found.reduce((a, b) => a + b)).toBe(rewards.length);
  });

  test('are as short as the edges', () => {
    const whole = histogramEdges(histogram([0, 1]));
    expect(binClauses('reward', whole, 0.4, 0.44)).toEqual(['reward:>0.4', 'reward:<=0.44']);
    expect(binClauses('reward', whole, 0, 0.04)).toEqual(['reward:>=0', 'reward:<=0.04']);
  });
});

describe('colours of counts', () => {
  test('zero has no colour, the largest count has the last colour, and the legend has every count once', () => {
    expect(rampOf(0, 50)).toBe(0);
    expect(rampOf(1, 50)).toBe(1);
    expect(rampOf(50, 50)).toBe(RAMP);
    expect(rampOf(1, 1)).toBe(RAMP);
    for (const most of [1, 2, 3, 7, 64, 1000]) {
      const legend = rampLegend(most);
      for (let count = 1; count <= most; count += 1) {
        const entry = legend.filter(({ from, to }) => from <= count && count <= to);
        expect(entry.map(({ colour }) => colour)).toEqual([rampOf(count, most)]);
      }
    }
  });
});
