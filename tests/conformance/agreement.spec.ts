import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { alphaInterval, type AnswerPattern, krippendorffAlpha } from '../../libs/metrics/src/agreement.ts';
import { uniform } from '../../libs/metrics/src/random.ts';
import { runScript } from './support/python.ts';

/** Agreement (docs/reference/metrics.md#agreement) against a coincidence matrix in NumPy on random tables with missing answers. */
const random = uniform(20_272);
const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
const list = <T>(count: number, one: () => T) => Array.from({ length: count }, one);

/** Answers of each unit; null: the observer did not answer. `care`: how often an observer sees the true label. */
function table(units: number, observers: number, labels: number, care: number, missing: number): (string | null)[][] {
  return list(units, () => {
    const truth = between(1, labels);
    return list(observers, () => (random() < missing ? null : `label ${random() < care ? truth : between(1, labels)}`));
  });
}
const tables = [
  ...list(200, () => table(between(1, 60), between(1, 6), between(1, 6), random(), random() * 0.7)),
  table(5_000, 3, 4, 0.7, 0.2),
];
const large = list(4, () => table(between(60, 200), between(2, 4), between(2, 4), 0.5 + random() / 2, 0.1));
const patternsOf = (units: (string | null)[][]): AnswerPattern[] =>
  units.map((unit) => {
    const counts: Record<string, number> = {};
    for (const value of unit) if (value !== null) counts[value] = (counts[value] ?? 0) + 1;
    return { counts, items: 1 };
  });
/** Equal items together, as the API reads them. */
function merged(patterns: readonly AnswerPattern[]): AnswerPattern[] {
  const found = new Map<string, AnswerPattern>();
  for (const { counts, items } of patterns) {
    const key = JSON.stringify(Object.entries(counts).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    found.set(key, { counts, items: items + (found.get(key)?.items ?? 0) });
  }
  return [...found.values()];
}

let theirs: { alphas: (number | null)[]; intervals: [number, number][] };
beforeAll(async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'agreement-'));
  try {
    const file = path.join(folder, 'data.json');
    await writeFile(file, JSON.stringify({ tables, large }));
    theirs = (await runScript('stats', 'agreement.py', [file], {})) as typeof theirs;
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('alpha is that of the coincidence matrix', () => {
  expect(theirs.alphas.filter((alpha) => alpha === null).length).toBeGreaterThan(5);
  for (const [at, units] of tables.entries()) {
    const [expected, patterns] = [theirs.alphas[at]!, patternsOf(units)];
    for (const ours of [krippendorffAlpha(patterns).alpha, krippendorffAlpha(merged(patterns)).alpha]) {
      if (expected === null) expect(ours).toBeNull();
      else expect(ours).toBeCloseTo(expected, 9);
    }
  }
});

test('the interval is that of units drawn with replacement, within the noise of draws', () => {
  for (const [at, units] of large.entries()) {
    const { low, high } = alphaInterval(merged(patternsOf(units)))!;
    const [theirLow, theirHigh] = theirs.intervals[at]!;
    const width = theirHigh - theirLow;
    expect(Math.abs(low - theirLow) / width).toBeLessThan(0.15);
    expect(Math.abs(high - theirHigh) / width).toBeLessThan(0.15);
  }
});
