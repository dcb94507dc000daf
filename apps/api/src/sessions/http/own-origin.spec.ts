import type { Caller } from '@palestra/session';
import { describe, expect, test } from 'vitest';
import { assertOwnOrigin } from './own-origin.ts';

describe('the origin of a page', () => {
  const caller = (anonymous: boolean) => ({ anonymous }) as Caller;
  const key = { authorization: 'Bearer or_key' };
  const cookie = { cookie: 'palestra_session=x' };

  test.each([
    ['a request without an origin', {}, true],
    ['a page of another site with an API key', { ...key, origin: 'https://elsewhere.example' }, false],
    ['our own page', { ...cookie, origin: 'https://ours.example', host: 'ours.example' }, false],
    ['our own page on this machine, without a key', { origin: 'http://localhost:8080', host: 'localhost:8080' }, true],
    ['our own page at the loopback address', { origin: 'http://[::1]:8080', host: '[::1]:8080' }, true],
  ])('accepts %s', (_name, headers, anonymous) => {
    expect(() => assertOwnOrigin({ headers }, caller(anonymous))).not.toThrow();
  });

  test.each([
    ['a page of another site', { ...cookie, origin: 'https://elsewhere.example', host: 'ours.example' }, false],
    ['an opaque origin', { ...cookie, origin: 'null', host: 'ours.example' }, false],
    // DNS rebinding: the name of the page resolves to this machine, so its origin equals the host.
    ['a page whose name was bound to this machine', { origin: 'http://evil.example:8080', host: 'evil.example:8080' }, true],
    [
      'a page whose name was bound to this machine, with an invalid key',
      { ...key, origin: 'http://evil.example:8080', host: 'evil.example:8080' },
      true,
    ],
  ])('refuses %s', (_name, headers, anonymous) => {
    expect(() => assertOwnOrigin({ headers }, caller(anonymous))).toThrow(expect.objectContaining({ code: 'forbidden' }));
  });
});
