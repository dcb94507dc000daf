import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clean, parseTolerant } from './tolerant-json.ts';

const read = (text: string) => {
  const { value, dirty } = parseTolerant(text);
  return dirty ? clean(value) : { value, nonfinite: false };
};

describe('parseTolerant', () => {
  it.each(['', '{', '{"a":nan}', '[NaN', '{"a":1,}'])('refuses %j', (text) => {
    expect(() => parseTolerant(text)).toThrow(SyntaxError);
  });

  it('reads bare NaN and infinities as null and says so', () => {
    expect(read('{"a":NaN,"b":[Infinity,-Infinity,1],"c":"NaN \\" Infinity"}')).toEqual({
      value: { a: null, b: [null, null, 1], c: 'NaN " Infinity' },
      nonfinite: true,
    });
    expect(read('{"a":1e400}')).toEqual({ value: { a: null }, nonfinite: true });
  });

  it('removes NUL from values and keys and mends lone surrogates', () => {
    expect(read('{"a\\u0000b":"x\\u0000y","s":"\\ud800 \\ud83d\\ude00"}').value).toEqual({ ab: 'xy', s: '\ufffd 😀' });
  });

  it('keeps __proto__ as an ordinary key', () => {
    const { value } = read('{"__proto__":{"polluted":"\\u0000"},"constructor":1}');
    expect(Object.keys(value as object)).toEqual(['__proto__', 'constructor']);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('cuts what is nested too deeply', () => {
    const deep = '['.repeat(5000) + ']'.repeat(5000);
    expect(() => JSON.stringify(read(deep).value)).not.toThrow();
  });

  it('reads every JSON document as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        fc.pre(!/u0000|u[dD][89a-fA-F]/.test(text));
        expect(read(text).value).toEqual(JSON.parse(text));
      }),
    );
  });
});
