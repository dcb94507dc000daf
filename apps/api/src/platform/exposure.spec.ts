import { describe, expect, test } from 'vitest';
import { newApiKey } from '../accounts/secret-token.ts';
import { readConfig } from './config.ts';
import { isExposed, keyWeakness } from './exposure.ts';

describe('whether other machines reach the service', () => {
  test.each(['127.0.0.1', '127.8.0.1', 'localhost', '::1'])('%s is not exposed', (host) => {
    expect(isExposed(host, undefined)).toBe(false);
    expect(isExposed(host, 'http://localhost:8080')).toBe(false);
  });
  test.each(['0.0.0.0', '::', '10.0.0.4', 'palestra.internal'])('%s is exposed', (host) => expect(isExposed(host, undefined)).toBe(true));
  test('a loopback address behind a proxy is exposed', () => expect(isExposed('127.0.0.1', 'https://palestra.org')).toBe(true));
});

describe('the first key of an exposed service', () => {
  test.each([
    'or_short',
    'changeme-changeme-changeme-changeme-1',
    'a'.repeat(40),
    'or_' + 'ab12'.repeat(10),
    '0123456789abcdef0123456789abcdef',
    'or_your-api-key-goes-here-0x7d9fKq2L',
  ])('must not be %s', (key) => {
    expect(keyWeakness(key)).toMatch(/openssl rand/);
    expect(() => readConfig({ HOST: '0.0.0.0', PALESTRA_API_KEY: key }, (file) => file)).toThrow(/^PALESTRA_API_KEY: expected [^\n]+$/);
  });

  test('may be random', () => {
    for (let i = 0; i < 200; i += 1) expect(keyWeakness(newApiKey())).toBeNull();
    const apiKey = newApiKey();
    expect(readConfig({ HOST: '0.0.0.0', PALESTRA_API_KEY: apiKey }, (file) => file)).toMatchObject({ apiKey });
  });

  test('may be short if only this machine reaches the service', () => {
    expect(readConfig({ PALESTRA_API_KEY: 'or_local' }, (file) => file)).toMatchObject({ apiKey: 'or_local' });
    expect(() => readConfig({ PALESTRA_API_KEY: 'or_local', PALESTRA_PUBLIC_URL: 'https://palestra.org' }, (file) => file)).toThrow(/32/);
  });
});
