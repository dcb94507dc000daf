import { expect, test } from 'vitest';
import { commonK, compared, lastOf, valueAt } from './curves.ts';
import { comparisonWarnings, type ComparedRun, differing, settingsOf } from './runs.ts';
import { formatDifference, formatP } from './signed.ts';

test('differences have a sign, and percentages differ by percentage points', () => {
  expect(formatDifference('reward_mean', 0.1624)).toBe('+.162');
  expect(formatDifference('reward_mean', -0.0004)).toBe('−<.001');
  expect(formatDifference('success', -0.031)).toBe('−3.1 pp');
  expect(formatDifference('success', 0.0004)).toBe('+<0.1 pp');
  expect(formatDifference('turns', 2.5)).toBe('+2.5');
  expect(formatDifference('turns', 0)).toBe('0');
  expect([formatP(0.0002), formatP(0.0231), formatP(0.5), formatP(1)]).toEqual(['< .001', '.0231', '.500', '1.00']);
});

interface Parts {
  letter?: string;
  model?: string;
  threshold?: number;
  phase?: 'train' | 'eval';
  den?: 'scored' | 'all';
  ks?: number[];
}
function run({ letter = 'A', model = '3B', threshold = 1, phase = 'train', den = 'scored', ks = [1, 2, 4] }: Parts = {}): ComparedRun {
  const success = [{ environment: 'acme/math', variant: null, threshold, strict: false }];
  const config = {
    models: { [model]: 4 },
    sources: { generic: 4 },
    success,
    settings: {},
    normaliser: { rows: { 2: 4 } },
    retention_days: null,
  };
  const summary = { phase, den, lens: 'canonical', groups: 1, rollouts: 4, provenance: { step: { reported: 4 }, reward: { parsed: 4 } } };
  const series = ks.map((k) => ({
    m: 'pass@{k}',
    key: `pass@${k}`,
    phase,
    value: [1],
    step: [0],
    x: [0],
    incomplete_groups: [0],
    denominator: [1],
  }));
  return { letter, hue: 'run-1', short: letter, run: {}, config, summary, series: { series } } as unknown as ComparedRun;
}

test('settings that differ are separated from equal ones', () => {
  const { differ, alike } = differing(settingsOf([run(), run({ model: '7B', threshold: 0.5 })]));
  expect(differ).toEqual([
    { name: 'Model', values: ['3B', '7B'] },
    { name: 'Success in acme/math', values: ['reward ≥ 1', 'reward ≥ 0.5'] },
  ]);
  expect(alike.map(({ name }) => name)).toContain('Environments');
});

test('warnings list exactly the differences that make figures incomparable', () => {
  const warningsOf = (...runs: ComparedRun[]) => comparisonWarnings(runs, settingsOf(runs));
  expect(warningsOf(run(), run({ letter: 'B', model: '7B' }))).toEqual([]);
  expect(warningsOf(run(), run({ letter: 'B', den: 'all' }))).toEqual(['Different denominators: A scored, B all.']);
  expect(warningsOf(run(), run({ letter: 'B', phase: 'eval' }))).toEqual(['Different phases: A train, B eval. Choose one above.']);
  expect(warningsOf(run(), run({ letter: 'B', threshold: 0 }))).toEqual(['Success in acme/math differs: A reward ≥ 1, B reward ≥ 0.']);
});

test('the common k is the largest k of all runs with groups', () => {
  expect(commonK([run(), run({ ks: [1, 2, 4, 8] })])).toBe(4);
  expect(commonK([run(), run({ ks: [] })])).toBe(4);
  expect(commonK([run({ ks: [] })])).toBeNull();
});

test('runs share points of x, and a line has no value beyond its end', () => {
  const curves = (steps: number[], values: number[]) => ({
    at: steps,
    curves: {
      steps,
      x: steps,
      hollow: steps.map(() => false),
      of: () => [{ value: values }],
      values: () => values,
      denominators: () => values.map(() => 4),
    },
  });
  const { x, lines } = compared(
    [curves([0, 2, 4], [0.1, 0.2, 0.3]), curves([1, 2], [0.5, 0.6])] as unknown as Parameters<typeof compared>[0],
    'turns',
  );
  expect(x).toEqual([0, 1, 2, 4]);
  expect(lines.map((line) => line!.values)).toEqual([
    [0.1, undefined, 0.2, 0.3],
    [undefined, 0.5, 0.6, undefined],
  ]);
  expect([0, 1, 2, 3].map((at) => valueAt(lines[0]!.values, at))).toEqual([0.1, 0.1, 0.2, 0.3]);
  expect([0, 1, 2, 3].map((at) => valueAt(lines[1]!.values, at))).toEqual([null, 0.5, 0.6, null]);
  expect(lastOf(lines[1]!.values)).toBe(0.6);
});
