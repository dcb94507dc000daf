import { expect, test } from 'vitest';
import { advisoriesOf } from './run-advisories.ts';

const advised = (figures: Record<string, number>) =>
  advisoriesOf({
    rows: [],
    value: (key) => figures[key] ?? null,
    confidence: null,
    recent: { rollouts: 0, aborted: 0, ambiguous: 0 },
    stepTimes: [],
    lastAt: null,
    now: 0,
  });

test('the zero-variance advisory splits groups by kind', () => {
  const [one] = advised({ zero_variance: 0.58, zero_variance_all_pass: 0.41, zero_variance_all_fail: 0.17, zero_variance_equal_other: 0 });
  expect(one).toMatchObject({
    rule: 'zero_variance',
    value: 0.58,
    text: '58 % of the groups have zero variance (all solved 41 %, none solved 17 %): the policy learns nothing from them.',
  });
  expect(advised({ zero_variance: 0.5, truncated: 0.25, tool_error: 0.05 })).toEqual([]);
});
