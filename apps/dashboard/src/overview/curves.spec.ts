import type { RunSeries } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { columnEdges } from '../charts/columns.ts';
import type { Series } from '../data/run-queries.ts';
import { chartAxis, pointName } from './axis.ts';
import { columnsOn, curveInWords, curvesOf } from './curves.ts';

const series = (fields: Partial<Series> & Pick<Series, 'm' | 'step' | 'value'>): Series => ({
  key: fields.m,
  lens: 'canonical',
  den: 'scored',
  label: fields.m,
  formula: '',
  phase: 'train',
  env: null,
  axis: 'step',
  axis_label: 'step',
  window_ms: null,
  x: fields.step,
  denominator: fields.step.map(() => 4),
  of: fields.step.map(() => 4),
  provenance: fields.step.map(() => 'reported' as const),
  incomplete_groups: fields.step.map(() => 0),
  notes: [],
  unavailable: false,
  ...fields,
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

  test('a point missing from an answer leaves no gap in the line; a null value leaves a gap', () => {
    expect(curves.steps).toEqual([0, 1, 2, 3]);
    expect(curves.values(low)).toEqual([0, undefined, null, 0.3]);
    expect(curves.values(high)).toEqual([1, 0.9, undefined, 0.8]);
    expect(curves.hollow).toEqual([false, false, false, true]);
  });
  test('the other phase is excluded', () => {
    expect(curves.of('low')).toEqual([low]);
    expect(curvesOf(undefined, 'train').steps).toEqual([]);
  });
  test('the description names ends and extremes, or the absence of values', () => {
    const names = curves.steps.map((step) => `step ${step}`);
    expect(curveInWords('high', curves.values(high), names, String)).toBe('high: 1 at step 0, 0.8 at step 3, between 0.8 and 1');
    expect(curveInWords('none', [null, undefined], names, String)).toBe('none: no values');
  });
});

describe('columns', () => {
  test('of several steps stand in their middle', () => {
    const main = { steps: [0, 1, 2, 3], x: [100, 110, 130, 140] };
    expect(columnsOn({ from: [0, 2], to: [1, 3] }, main, false)).toEqual({ from: [0, 2], to: [1, 3], x: [105, 135] });
    expect(columnsOn({ from: [7], to: [7] }, main, false)).toEqual({ from: [7], to: [7], x: [7] });
  });
  test('of arrival windows stand at the x of the curves, on every axis', () => {
    const times = { from: [30_000, 90_000], to: [60_000, 120_000] };
    const main = { steps: [0, 1], x: [30_000, 90_000] };
    expect(columnsOn(times, main, true)).toEqual({ from: [0, 1], to: [0, 1], x: [30_000, 90_000] });
    expect(columnsOn(times, { ...main, x: [8, 24] }, true).x).toEqual([8, 24]);
    // A window that began after the curves were read.
    expect(columnsOn(times, { steps: [0], x: [30_000] }, true)).toEqual({ from: [0, 1], to: [0, 1], x: [30_000, 90_000] });
  });
  test('windows are named by time or by the number of rollouts so far', () => {
    const curves = curvesOf(answer([series({ m: 'reward_mean', step: [0, 1], x: [8, 24], value: [0, 1] })]), 'train');
    const axis = chartAxis({ axis: 'count', axis_label: 'rollouts, by arrival window of 30 s' }, curves, false);
    expect(pointName(axis, true)(1, 24)).toBe('after 24 rollouts');
    expect(pointName({ ...axis, kind: 'time', format: () => '14:05:10' }, true)(1, 24)).toBe('from 14:05:10');
  });
  test('reach half way to their neighbours, and a single column has a width', () => {
    expect(columnEdges([0, 2, 6])).toEqual([
      [-1, 1],
      [1, 4],
      [4, 8],
    ]);
    expect(columnEdges([7])).toEqual([[6.5, 7.5]]);
    expect(columnEdges([])).toEqual([]);
  });
});
