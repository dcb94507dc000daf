import { describe, expect, test } from 'vitest';
import { columnEdges } from '../charts/columns.ts';
import type { RunSeries, Series } from '../data/run-reads.ts';
import { curveInWords, curvesOf } from './curves.ts';

const series = (own: Partial<Series> & Pick<Series, 'm' | 'step' | 'value'>): Series => ({
  key: own.m,
  lens: 'canonical',
  den: 'scored',
  label: own.m,
  formula: '',
  phase: 'train',
  env: null,
  axis: 'step',
  axis_label: 'step',
  window_ms: null,
  x: own.step,
  denominator: own.step.map(() => 4),
  of: own.step.map(() => 4),
  provenance: own.step.map(() => 'reported' as const),
  incomplete_groups: own.step.map(() => 0),
  notes: [],
  unavailable: false,
  ...own,
});
const answer = (all: Series[]): RunSeries => ({
  x: 'step',
  axis: 'step',
  axis_label: 'step',
  window_ms: null,
  series: all,
  unknown_step: 0,
  incomplete: false,
});

describe('series on common points', () => {
  const low = series({ m: 'low', step: [0, 2, 3], value: [0, null, 0.3], incomplete_groups: [0, 0, 1] });
  const high = series({ m: 'high', step: [0, 1, 3], value: [1, 0.9, 0.8] });
  const curves = curvesOf(answer([low, high, series({ m: 'low', phase: 'eval', step: [9], value: [1] })]), 'train');

  test('a point that one answer left out is no gap in its line; what was not known is one', () => {
    expect(curves.steps).toEqual([0, 1, 2, 3]);
    expect(curves.values(low)).toEqual([0, undefined, null, 0.3]);
    expect(curves.values(high)).toEqual([1, 0.9, undefined, 0.8]);
    expect(curves.hollow).toEqual([false, false, false, true]);
  });
  test('another phase is not among them', () => {
    expect(curves.of('low')).toEqual([low]);
    expect(curvesOf(undefined, 'train').steps).toEqual([]);
  });
  test('in words: ends and extremes, or that there is nothing', () => {
    const names = curves.steps.map((step) => `step ${step}`);
    expect(curveInWords('high', curves.values(high), names, String)).toBe('high: 1 at step 0, 0.8 at step 3, between 0.8 and 1');
    expect(curveInWords('none', [null, undefined], names, String)).toBe('none: no values');
  });
});

describe('columns', () => {
  test('reach half way to their neighbours, and a single one has a width', () => {
    expect(columnEdges([0, 2, 6])).toEqual([
      [-1, 1],
      [1, 4],
      [4, 8],
    ]);
    expect(columnEdges([7])).toEqual([[6.5, 7.5]]);
    expect(columnEdges([])).toEqual([]);
  });
});
