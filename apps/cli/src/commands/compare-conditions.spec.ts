import type { ComparedRuns } from '@palestra/protocol';
import { expect, test } from 'vitest';
import { exitCodeFor, outcomesOf, parseCondition as parseText, parseMetric } from './compare-conditions.ts';

const parseCondition = (text: string) => parseText(text, parseMetric);

test.each([
  ['reward_mean<-0.02', { metric: 'reward_mean', end: null, comparison: '<', limit: -0.02 }],
  ['success.low <= -.05', { metric: 'success', end: 'low', comparison: '<=', limit: -0.05 }],
  [' tool_error.high>=1e-2 ', { metric: 'tool_error', end: 'high', comparison: '>=', limit: 0.01 }],
  ['turns>+3.', { metric: 'turns', end: null, comparison: '>', limit: 3 }],
])('%s is a condition', (text, expected) => {
  expect(parseCondition(text)).toEqual({ text, ...expected });
});

test.each([
  '',
  'reward_mean',
  'reward_mean<',
  'reward_mean=1',
  'reward_mean.p<0.05',
  'reward_mean<1 or 2',
  'reward_mean<NaN',
  'reward<1',
  'reward_mean<<1',
])('%j is refused', (text) => {
  expect(() => parseCondition(text)).toThrow(/^(?:Invalid condition|Unknown metric) /);
});

const pair = (run: string, difference: number, low: number | null) => ({
  run,
  metrics: [{ metric: 'reward_mean', difference, low, high: low }],
});
const answer = (...pairs: ReturnType<typeof pair>[]) => ({ pairs }) as unknown as ComparedRuns;

test('the exit code is 5 if any condition is met, else 1 if one cannot be decided', () => {
  const status = (text: string, ...pairs: ReturnType<typeof pair>[]) => exitCodeFor(outcomesOf([parseCondition(text)], answer(...pairs)));
  expect(status('reward_mean<-0.02', pair('b', -0.01, -0.2))).toBe(0);
  expect(status('reward_mean.low<-0.02', pair('b', -0.01, -0.2))).toBe(5);
  expect(status('reward_mean<-0.02', pair('b', 0.01, 0), pair('c', -0.03, -0.2))).toBe(5);
  expect(status('reward_mean<=-0.02', pair('b', -0.02, 0))).toBe(5);
  expect(status('reward_mean.low<0', pair('b', -0.5, null))).toBe(1);
  expect(status('turns>0', pair('b', -0.5, null))).toBe(1);
  expect(status('reward_mean.low<0', pair('b', 0, null), pair('c', 0, -1))).toBe(5);
  expect(exitCodeFor([])).toBe(0);
});
