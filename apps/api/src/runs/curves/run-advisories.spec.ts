import { expect, test } from 'vitest';
import { type AdvisoryInput, advisoriesOf } from './run-advisories.ts';

const nothing: AdvisoryInput = {
  rows: [],
  value: () => null,
  confidence: null,
  recent: { rollouts: 0, aborted: 0, ambiguous: 0 },
  stepTimes: [],
  lastAt: null,
  finished: false,
  now: 0,
};
const advised = (figures: Record<string, number>) => advisoriesOf({ ...nothing, value: (key) => figures[key] ?? null });

test('the zero-variance advisory splits groups by kind', () => {
  const [one] = advised({ zero_variance: 0.58, zero_variance_all_pass: 0.41, zero_variance_all_fail: 0.17, zero_variance_equal_other: 0 });
  expect(one).toMatchObject({
    rule: 'zero_variance',
    value: 0.58,
    text: '58 % of the groups have zero variance (all solved 41 %, none solved 17 %): the policy learns nothing from them.',
  });
  expect(advised({ zero_variance: 0.5, truncated: 0.25, tool_error: 0.05 })).toEqual([]);
});

test('a run is quiet after five times its step time and stalled after half an hour, unless it is finished', () => {
  const minute = 60_000;
  const after = (minutes: number, finished = false) =>
    advisoriesOf({
      ...nothing,
      stepTimes: [0, 1, 2, 3].map((step) => step * minute),
      lastAt: 3 * minute,
      now: (3 + minutes) * minute,
      finished,
    });
  expect(after(5)).toEqual([]);
  expect(after(6)).toMatchObject([{ rule: 'quiet', level: 'hint', text: 'No rollout for 6 min; a step takes 60 s (median).' }]);
  expect(after(30)).toMatchObject([{ rule: 'stalled', level: 'warning' }]);
  expect(after(30, true)).toEqual([]);
});
