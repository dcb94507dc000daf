import { expect, test } from 'vitest';
import { decodeCursor, encodeCursor, exactly, FLOAT64, INT16, INT32, INT64, TIME } from './cursor.ts';

test('a cursor with values that PostgreSQL does not accept is refused', () => {
  const parts = ['desc', '-9223372036854775808', '2147483647', '-1', '1.5e-7', '2026-11-23 12:36:17.622+00'];
  const checks = [exactly('desc'), INT64, INT32, INT16, FLOAT64, TIME];
  expect(decodeCursor(encodeCursor(parts), ...checks)).toEqual(parts);
  for (const text of ['-Infinity', 'NaN', '0', '-0', '0e5', '1.7976931348623157e+308']) expect([text, FLOAT64(text)]).toEqual([text, true]);
  for (const text of ['2026-11-23T12:36:17.622Z', '2026-11-23 18:06:17.622+05:30']) expect([text, TIME(text)]).toEqual([text, true]);
  const wrong = [
    ['asc', exactly('desc')],
    ['9223372036854775808', INT64],
    ['-2147483649', INT32],
    ['1.5', INT32],
    ['32768', INT16],
    ['1e400', FLOAT64],
    ['1e-400', FLOAT64],
    ['+Infinity', FLOAT64],
    ['9999999999999', TIME],
    ['2026-13-45 12:36:17+00', TIME],
  ] as const;
  for (const [text, check] of wrong)
    expect(() => decodeCursor(encodeCursor([text]), check)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }));
  for (const cursor of ['', 'AAAA', encodeCursor(['1', '2'])])
    expect(() => decodeCursor(cursor, INT64)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }));
});
