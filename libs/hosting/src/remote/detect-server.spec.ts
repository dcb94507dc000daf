import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve, defineEnvironment, tool } from '@palestra/environment-kit';
import { afterEach, expect, test } from 'vitest';
import { detectServer } from './detect-server.ts';

/** Responses by method and path. tests/conformance covers OpenEnv's own servers. */
type Answers = Record<string, { status?: number; type?: string; body: string; stays?: boolean; headers?: Record<string, string> }>;
const { signal } = new AbortController();
let stop: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(stop.map((end) => end()));
  stop = [];
});

async function server(answers: Answers) {
  const seen: string[] = [];
  const started = http.createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}${request.headers['mcp-session-id'] ?? ''}`.trim());
    const {
      status = 200,
      type = 'application/json',
      body,
      stays,
      headers,
    } = answers[`${request.method} ${request.url}`] ?? { status: 404, body: '{}' };
    response.writeHead(status, { 'content-type': type, ...headers });
    if (stays) response.write(body);
    else response.end(body);
  });
  started.listen(0, '127.0.0.1');
  await once(started, 'listening');
  stop.push(async () => {
    started.closeAllConnections();
    started.close();
  });
  return { url: `http://127.0.0.1:${(started.address() as AddressInfo).port}`, seen };
}

test('an ORS server lists environments', async () => {
  const t = tool({ description: 'T.', run: () => 'x' });
  const running = await serve([defineEnvironment({ name: 'e', splits: ['train'], tasks: () => [1], prompt: () => 'p', tools: { t } })]);
  stop.push(() => running.close());
  expect(await detectServer(running.url, signal)).toBe('remote');
});

test('an OpenEnv server is detected by its schemas, even if it lists environments', async () => {
  const { url, seen } = await server({
    'GET /p/schema': { body: '{"action":{},"observation":{},"state":{}}' },
    'GET /p/list_environments': { body: '["e"]' },
  });
  expect(await detectServer(`${url.replace('//', '//user:secret@')}/p`, signal)).toBe('openenv');
  expect(seen).toContain(`GET /p/schema Basic ${Buffer.from('user:secret').toString('base64')}`);
});

test('an OpenEnv server of the first generation is detected by the routes in its OpenAPI document', async () => {
  const { url } = await server({ 'GET /openapi.json': { body: '{"paths":{"/reset":{},"/step":{},"/state":{}}}' } });
  expect(await detectServer(url, signal)).toBe('openenv');
});

test('an MCP server answers initialize as JSON or as a stream, and its session is closed', async () => {
  const result = '{"jsonrpc":"2.0","id":1,"result":{}}';
  const json = await server({ 'POST /mcp': { body: result, headers: { 'mcp-session-id': 'abc' } } });
  expect(await detectServer(`${json.url}/mcp`, signal)).toBe('mcp');
  expect(json.seen.at(-1)).toBe('DELETE /mcp abc');
  const stream = await server({ 'POST /mcp': { type: 'text/event-stream', body: `event: message\ndata: ${result}\n\n`, stays: true } });
  expect(await detectServer(`${stream.url}/mcp`, signal)).toBe('mcp');
  const older = await server({ 'GET /sse': { type: 'text/event-stream', body: 'event: endpoint\ndata: /messages\n\n', stays: true } });
  expect(await detectServer(`${older.url}/sse`, signal)).toBe('mcp');
});

test('another server is not detected, and an unreachable URL is an error', async () => {
  const { url } = await server({ 'GET /': { body: '<html>', type: 'text/html' }, 'GET /list_environments': { body: '[]' } });
  expect(await detectServer(url, signal)).toBeNull();
  await expect(detectServer('http://127.0.0.1:9', signal)).rejects.toThrow('fetch failed');
});
