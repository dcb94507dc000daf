import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canaryFault, isOfCanary } from './canary.ts';

const ended = (count: number, failed = 0, unscored = 0) => ({ ended: count, failed, unscored });

test('a session is always of the same share, and the share is as large as asked', () => {
  const sids = Array.from({ length: 10_000 }, (_, index) => `session-${index}`);
  for (const percent of [1, 10, 50, 100]) {
    const chosen = sids.filter((sid) => isOfCanary(sid, percent)).length;
    expect(Math.abs(chosen - 100 * percent)).toBeLessThan(300);
  }
  expect(sids.some((sid) => isOfCanary(sid, 0))).toBe(false);
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 0, max: 99 }), (sid, percent) => !isOfCanary(sid, percent) || isOfCanary(sid, percent + 1)),
  );
});

test('a canary falls when more than a fifth of its sessions fail, and more than beside it', () => {
  expect(canaryFault(ended(19, 19), ended(100))).toBeNull();
  expect(canaryFault(ended(20, 4), ended(0))).toBeNull();
  expect(canaryFault(ended(20, 5), ended(0))).toBe(
    '5 of its last 20 sessions (25 %) failed because of the environment or the infrastructure; of the version beside it 0 %',
  );
  expect(canaryFault(ended(20, 5), ended(100, 30))).toBeNull();
  expect(canaryFault(ended(20, 0, 10), ended(100, 0, 1))).toContain('ended without a reward');
});
