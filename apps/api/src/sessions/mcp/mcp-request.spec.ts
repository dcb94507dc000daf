import { parseJson } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { readMessage } from './mcp-request.ts';

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
