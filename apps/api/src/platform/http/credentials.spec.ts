import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { keyOf, takePathKey } from './credentials.ts';

const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });

test.each([
  ['its own header', { 'x-api-key': ' sk-1 ' }, 'sk-1'],
  ['bearer', { authorization: 'bearer  sk-1' }, 'sk-1'],
  ['the password of userinfo', basic('key:sk-1'), 'sk-1'],
  ['a password with a colon', basic('key:sk:1'), 'sk:1'],
  ['userinfo without a password', basic('sk-1'), 'sk-1'],
  ['its own header before others', { 'x-api-key': 'sk-1', ...basic('key:sk-2') }, 'sk-1'],
  ['nothing', {}, null],
  ['an empty password and name', basic(':'), null],
  ['another scheme', { authorization: 'Digest sk-1' }, null],
])('the key comes from %s', (_name, headers, key) => {
  expect(keyOf(headers)).toBe(key);
});

describe('a key in the path', () => {
  const take = (url: string) => {
    const request = { url, headers: {} } as IncomingMessage;
    return [takePathKey(request), request.headers['x-api-key']];
  };
  test.each([
    ['/k/sk-1/openenv/acme/echo/ws?session_id=7', '/openenv/acme/echo/ws?session_id=7', 'sk-1'],
    ['/k/sk%2F1/mcp/acme/echo', '/mcp/acme/echo', 'sk/1'],
    ['/k/%zz/x', '/x', '%zz'],
    ['/k/sk-1', '/', 'sk-1'],
    ['/k/sk-1?x=1', '/?x=1', 'sk-1'],
    ['/keys', '/keys', undefined],
    ['/k/', '/k/', undefined],
    ['//ping', '/ping', undefined],
  ])('%s', (url, path, key) => {
    expect(take(url)).toEqual([path, key]);
  });
});
