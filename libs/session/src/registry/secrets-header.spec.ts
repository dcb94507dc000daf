import { PalestraError } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { decodeSecrets } from './secrets-header.ts';

describe('X-Secrets', () => {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
  test('decodes values and domains', () => {
    expect(decodeSecrets(null)).toBeNull();
    expect(decodeSecrets(encode({ A: { value: 'x' }, B: { value: 'y', allowed_domains: ['z'] } }))).toEqual({
      A: { value: 'x' },
      B: { value: 'y', allowed_domains: ['z'] },
    });
  });
  test.each([
    ['@@'],
    [encode([1])],
    [encode({ A: 'x' })],
    [encode({ A: { value: 1 } })],
    [encode({ A: { value: 'x', allowed_domains: [1] } })],
  ])('refuses %s', (header) => {
    expect(() => decodeSecrets(header)).toThrow(PalestraError);
  });
});
