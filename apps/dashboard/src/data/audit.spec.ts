import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { auditExportUrl } from './audit.ts';

beforeEach(() => void vi.stubEnv('TZ', 'Europe/Berlin'));
afterEach(() => void vi.unstubAllEnvs());

const rangeOf = (since: string, until: string): (string | null)[] => {
  const query = new URL(auditExportUrl({ action: '', actor: '', since, until }), 'http://host').searchParams;
  return [query.get('since'), query.get('until')];
};

test('days begin and end at midnight of the reader, also where the clocks change', () => {
  expect(rangeOf('2026-06-01', '2026-06-01')).toEqual(['2026-05-31T22:00:00.000Z', '2026-06-01T22:00:00.000Z']);
  expect(rangeOf('2026-10-25', '2026-10-25')).toEqual(['2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z']);
  expect(rangeOf('2026-03-29', '2026-03-29')).toEqual(['2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z']);
});

test('no day, and a year of five digits, select everything', () => {
  expect(rangeOf('', '')).toEqual([null, null]);
  expect(rangeOf('20266-01-01', '20266-01-01')).toEqual([null, null]);
});
