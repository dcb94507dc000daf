import { parseJson } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { describe, expect, test } from 'vitest';
import { assertOwnOrigin, readMessage } from './mcp-request.ts';

const body = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

describe('a message', () => {
  test.each([
    ['a notification', { jsonrpc: '2.0', method: 'notifications/initialized' }],
    ['a response', { jsonrpc: '2.0', id: 1, result: {} }],
    ['a list', [{ jsonrpc: '2.0', id: 1, method: 'ping' }]],
    ['a request without an id', { jsonrpc: '2.0', id: null, method: 'ping' }],
    ['no object', 7],
  ])('%s is no request', (_name, value) => {
    expect(readMessage(body(value))).toEqual({ parsed: value, request: null, call: null });
  });

  test('a call keeps the numbers of its input; a malformed one is left to the SDK', () => {
    const call = readMessage(body('{"id":"a","method":"tools/call","params":{"name":"add","arguments":{"by":1.0}}}'));
    expect(call.request).toEqual({ id: 'a', method: 'tools/call' });
    expect(call.call).toEqual({ tool: 'add', input: { by: parseJson('1.0') } });
    expect(readMessage(body({ id: 1, method: 'tools/call', params: { name: 'add' } })).call).toEqual({ tool: 'add', input: {} });
    for (const params of [undefined, {}, { name: 3 }, { name: 'add', arguments: [1] }]) {
      expect(readMessage(body({ id: 1, method: 'tools/call', params }))).toMatchObject({ request: { id: 1 }, call: null });
    }
  });

  test('nonsense and nothing are no JSON', () => {
    for (const text of ['', '{', 'NaN']) expect(() => readMessage(body(text))).toThrow(expect.objectContaining({ code: 'invalid_json' }));
    expect(() => readMessage(undefined)).toThrow(expect.objectContaining({ code: 'invalid_json' }));
  });
});

describe('the origin of a page', () => {
  const caller = (anonymous: boolean) => ({ anonymous }) as Caller;
  const key = { authorization: 'Bearer or_key' };
  const cookie = { cookie: 'palestra_session=x' };

  test.each([
    ['a request of no page', {}, true],
    ['a page of another site with a key of its own', { ...key, origin: 'https://elsewhere.example' }, false],
    ['our own page', { ...cookie, origin: 'https://ours.example', host: 'ours.example' }, false],
    ['our own page on this machine', { origin: 'http://localhost:8080', host: 'localhost:8080' }, true],
    ['the same by its address', { origin: 'http://[::1]:8080', host: '[::1]:8080' }, true],
  ])('%s may', (_name, headers, anonymous) => {
    expect(() => assertOwnOrigin({ headers }, caller(anonymous))).not.toThrow();
  });

  test.each([
    ['a page of another site', { ...cookie, origin: 'https://elsewhere.example', host: 'ours.example' }, false],
    ['a page without an address', { ...cookie, origin: 'null', host: 'ours.example' }, false],
    // DNS rebinding: the page's own name leads to this machine, so that its origin is its host.
    ['a page whose name was bound to this machine', { origin: 'http://evil.example:8080', host: 'evil.example:8080' }, true],
    ['the same with a made-up key', { ...key, origin: 'http://evil.example:8080', host: 'evil.example:8080' }, true],
  ])('%s may not', (_name, headers, anonymous) => {
    expect(() => assertOwnOrigin({ headers }, caller(anonymous))).toThrow(expect.objectContaining({ code: 'forbidden' }));
  });
});
