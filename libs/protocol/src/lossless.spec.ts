import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson, stringifyJson, toPlainNumber } from './lossless.ts';

describe('lossless JSON', () => {
  test.each(['1.0', '12345678901234567890', '1e400', '-0', '0.10', '1E5', '9007199254740993', '0.1', '[1.0,{"a":1.50}]', '1795227632073'])(
    'writes %s back as it was',
    (text) => {
      expect(stringifyJson(parseJson(text))).toBe(text);
    },
  );
  test('numbers that survive are plain numbers', () => {
    expect(parseJson('{"a":1.5,"b":1.0}')).toMatchObject({ a: 1.5 });
    expect(toPlainNumber((parseJson('{"b":1.0}') as { b: unknown }).b)).toBe(1);
    expect(toPlainNumber(2)).toBe(2);
    expect(toPlainNumber('2')).toBeNull();
  });
  test('keeps __proto__ and constructor as ordinary keys', () => {
    for (const text of ['{"__proto__":{"x":1.0}}', '{"__proto__":{"x":1}}', '{"constructor":{"prototype":1.0}}']) {
      const value = parseJson(text);
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect(stringifyJson(value)).toBe(text);
    }
  });
  test('the last of duplicate keys wins, as in JSON.parse', () => {
    expect(stringifyJson(parseJson('{"a":1.0,"a":2.0}'))).toBe('{"a":2.0}');
  });
  test('refuses what is not JSON', () => {
    for (const text of ['', '{', '{"a":1.}', '[01]', 'NaN', '1.0 2']) expect(() => parseJson(text)).toThrow(SyntaxError);
    expect(() => parseJson('['.repeat(100_000) + '1.0' + ']'.repeat(100_000))).toThrow();
  });
  test('agrees with JSON.parse on every document', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.stringify(JSON.parse(stringifyJson(parseJson(text))))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });
});
