import type { EnvironmentReport } from '@palestra/protocol';
import { expect, test } from 'vitest';
import { reportScale, sortedChecks, summaryOf } from './report.ts';

const check = (id: string, status: EnvironmentReport['checks'][number]['status']) => ({ id, title: id, status, detail: '' });
const player = (mean: number) => ({
  name: 'p',
  description: '',
  split: 'test',
  tasks: 1,
  samples: 1,
  mean,
  low: mean,
  high: mean,
  solved: 0,
});
const report = (changes: Partial<EnvironmentReport>): EnvironmentReport => ({
  created_at: '2026-01-01T00:00:00Z',
  kit: '0.1.0',
  checks: [],
  players: [],
  reward_range: null,
  ...changes,
});

test('failed checks come first, and the summary counts them', () => {
  const mixed = report({ checks: [check('a', 'passed'), check('b', 'skipped'), check('c', 'failed'), check('d', 'passed')] });
  expect(sortedChecks(mixed).map(({ id }) => id)).toEqual(['c', 'a', 'd', 'b']);
  expect(summaryOf(mixed)).toBe('1 of 4 checks failed, 1 skipped');
  expect(summaryOf(report({ checks: [check('a', 'passed')] }))).toBe('1 check passed');
});

test('the scale is the declared range, or holds every player', () => {
  const declared = reportScale(report({ reward_range: [-1, 1], players: [player(0), player(5)] }));
  expect([declared.position(0), declared.position(5), declared.position(-1)]).toEqual([50, 100, 0]);
  expect(reportScale(report({ players: [player(-1), player(0.5)] }))).toMatchObject({ low: -1, high: 1 });
  expect(reportScale(report({ reward_range: [1, 1] })).position(1)).toBe(0);
});
