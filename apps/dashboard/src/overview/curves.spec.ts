import type { RunSeries } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { columnEdges } from '../charts/columns.ts';
import type { Series } from '../data/run-reads.ts';
import { chartAxis, pointName } from './axis.ts';
import { columnsOn, curveInWords, curvesOf } from './curves.ts';

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
  test('of several steps stand in the middle of them', () => {
    const main = { steps: [0, 1, 2, 3], x: [100, 110, 130, 140] };
    expect(columnsOn({ from: [0, 2], to: [1, 3] }, main, false)).toEqual({ from: [0, 2], to: [1, 3], x: [105, 135] });
    expect(columnsOn({ from: [7], to: [7] }, main, false)).toEqual({ from: [7], to: [7], x: [7] });
  });
  test('of windows of arrival stand where the curves have them, whatever the axis', () => {
    const times = { from: [30_000, 90_000], to: [60_000, 120_000] };
    const main = { steps: [0, 1], x: [30_000, 90_000] };
    expect(columnsOn(times, main, true)).toEqual({ from: [0, 1], to: [0, 1], x: [30_000, 90_000] });
    expect(columnsOn(times, { ...main, x: [8, 24] }, true).x).toEqual([8, 24]);
    // One that came after the curves were asked for.
    expect(columnsOn(times, { steps: [0], x: [30_000] }, true)).toEqual({ from: [0, 1], to: [0, 1], x: [30_000, 90_000] });
  });
  test('windows are called by their time, or by how many rollouts had come', () => {
    const curves = curvesOf(answer([series({ m: 'reward_mean', step: [0, 1], x: [8, 24], value: [0, 1] })]), 'train');
    const axis = chartAxis({ axis: 'count', axis_label: 'rollouts, by arrival window of 30 s' }, curves, false);
    expect(pointName(axis, true)(1, 24)).toBe('after 24 rollouts');
    expect(pointName({ ...axis, kind: 'time', format: () => '14:05:10' }, true)(1, 24)).toBe('from 14:05:10');
  });
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
