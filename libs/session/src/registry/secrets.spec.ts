import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PalestraError } from '@palestra/protocol';
import { SecretMask } from './secrets.ts';

const mask = new SecretMask({ TOKEN: { value: 'abc"def\\ghi' }, LONGER: { value: 'abc"def\\ghi-and-more' }, SHORT: { value: '1234567' } });

describe('SecretMask', () => {
  test('hides escaped and plain values, the longest first, and no short ones', () => {
    expect(mask.hide(JSON.stringify({ a: 'x abc"def\\ghi y', b: 'abc"def\\ghi-and-more', c: '1234567' }))).toBe(
      '{"a":"x [secret:TOKEN] y","b":"[secret:LONGER]","c":"1234567"}',
    );
    expect(mask.hide('plain abc"def\\ghi words')).toBe('plain [secret:TOKEN] words');
  });

  test('reveal undoes hide (property)', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 8 }), fc.string(), (value, around) => {
        const one = new SecretMask({ KEY: { value } });
        const text = JSON.stringify({ said: `${around}${value}${around}` });
        expect(one.reveal(one.hide(text))).toBe(text);
        expect(JSON.parse(one.hide(text)).said).not.toContain(`${around}${value}${around}`);
      }),
      { examples: [['$&$`$1aaaa', '']] },
    );
  });

  test('hides in values and errors, and copies nothing without secrets', () => {
    const value = { blocks: [{ text: 'abc"def\\ghi' }] };
    expect(mask.hideIn(value)).toEqual({ blocks: [{ text: '[secret:TOKEN]' }] });
    const clean = { blocks: [] };
    expect(mask.hideIn(clean)).toBe(clean);
    const error = new PalestraError('environment_failed', { detail: 'ValueError: abc"def\\ghi', status: 500 });
    expect(mask.hideInError(error)).toMatchObject({ code: 'environment_failed', message: 'ValueError: [secret:TOKEN]' });
  });
});
