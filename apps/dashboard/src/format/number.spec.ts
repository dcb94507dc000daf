import { afterEach, describe, expect, test, vi } from 'vitest';
import { formatBytes, formatCount, formatMean, formatShare } from './number.ts';
import { formatAge, formatDuration } from './time.ts';

afterEach(() => vi.unstubAllEnvs());

describe('numbers', () => {
  test('counts, means, shares and bytes have three digits', () => {
    expect(formatCount(9088)).toBe('9\u202f088');
    expect(formatCount(12_400)).toBe('12.4k');
    expect([999_499, 999_500, 3_804_000, 1_999_999_999].map((value) => formatCount(value))).toEqual(['999k', '1M', '3.8M', '2G']);
    expect([999, 999_999, 18e9, 130e9].map((value) => formatBytes(value))).toEqual(['999 B', '1 MB', '18 GB', '130 GB']);
    expect(formatCount(undefined)).toBe('–');
    expect(formatCount(-12_400)).toBe('−12.4k');
    expect(formatMean(6.2137)).toBe('6.21');
    expect(formatMean(-2.9167)).toBe('−2.92');
    expect(formatMean(-12_345)).toBe('−12.3k');
    expect(formatShare(1, 3)).toBe('33 %');
    expect(formatShare(1, 0)).toBe('–');
    expect(formatShare(995, 1000)).toBe('99.5 %');
    expect([0, 4, 5, 9_994, 9_995, 9_996, 10_000].map((part) => formatShare(part, 10_000))).toEqual([
      '0 %',
      '<0.1 %',
      '0.1 %',
      '99.9 %',
      '>99.9 %',
      '>99.9 %',
      '100 %',
    ]);
    expect(formatBytes(1_234_567)).toBe('1.23 MB');
  });
  test('an old date is the one of the reader', () => {
    const now = Date.parse('2026-06-01T00:00:00Z');
    vi.stubEnv('TZ', 'America/Los_Angeles');
    expect(formatAge('2026-01-02T03:00:00Z', now)).toBe('2026-01-01');
    vi.stubEnv('TZ', 'Asia/Tokyo');
    expect(formatAge('2026-01-02T23:00:00Z', now)).toBe('2026-01-03');
  });
  test('ages have one unit', () => {
    const now = Date.parse('2026-01-02T00:00:00Z');
    expect(formatAge('2026-01-01T23:59:56Z', now)).toBe('4 s ago');
    expect(formatAge('2026-01-01T00:00:00Z', now)).toBe('1 d ago');
    expect(formatAge('rubbish', now)).toBe('–');
    expect([212, 999.6, 4_100, 59_970, 60_000, 192_000].map((ms) => formatDuration(ms))).toEqual([
      '212 ms',
      '1.0 s',
      '4.1 s',
      '1 m 0 s',
      '1 m 0 s',
      '3 m 12 s',
    ]);
  });
});
