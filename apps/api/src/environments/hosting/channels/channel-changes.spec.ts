import { expect, test } from 'vitest';
import { promoted, rolledBack } from './channel-changes.ts';

const none = { canaryVersionId: null, canaryPercent: 0 };
const at = (versionId: string, previousVersionId: string | null = null, canaryVersionId: string | null = null) => ({
  versionId,
  previousVersionId,
  canaryVersionId,
});

test('a promotion remembers the version before', () => {
  expect(promoted(null, 'v1', 100, 'r')).toEqual({ versionId: 'v1', previousVersionId: null, ...none, reason: 'r' });
  expect(promoted(at('v1'), 'v2', 100, 'r')).toMatchObject({ versionId: 'v2', previousVersionId: 'v1' });
  expect(promoted(at('v2', 'v1'), 'v2', 100, 'r')).toMatchObject({ versionId: 'v2', previousVersionId: 'v1' });
  expect(promoted(at('v1', 'v0', 'v2'), 'v2', 100, 'r')).toMatchObject({ versionId: 'v2', previousVersionId: 'v1', ...none });
});

test('a canary needs another version beside it', () => {
  expect(promoted(at('v1', 'v0'), 'v2', 10, 'r')).toEqual({
    versionId: 'v1',
    previousVersionId: 'v0',
    canaryVersionId: 'v2',
    canaryPercent: 10,
    reason: 'r',
  });
  expect(() => promoted(null, 'v1', 10, 'r')).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  expect(() => promoted(at('v1'), 'v1', 10, 'r')).toThrow(expect.objectContaining({ code: 'invalid_request' }));
});

test('a rollback ends a canary, or returns to the version before, once', () => {
  expect(rolledBack(at('v1', 'v0', 'v2'), 'r')).toMatchObject({ versionId: 'v1', previousVersionId: 'v0', ...none });
  const back = rolledBack(at('v2', 'v1'), 'r');
  expect(back).toMatchObject({ versionId: 'v1', previousVersionId: null });
  expect(() => rolledBack(at('v1'), 'r')).toThrow(/Promote the version/);
  expect(() => rolledBack(null, 'r')).toThrow(expect.objectContaining({ code: 'channel_not_found' }));
});
