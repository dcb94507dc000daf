import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectMcp } from '../integration/protocols/mcp.world.ts';
import { type Replicas, startReplicas } from '../support/replicas.ts';

/** Two processes of the service behind a proxy without stickiness: each MCP session is served by the one that has its program. */
const SERVER = path.resolve(import.meta.dirname, '../integration/protocols/mcp.server.mjs');
let replicas: Replicas;

beforeAll(async () => {
  replicas = await startReplicas(2, { env: { PALESTRA_ALLOW_COMMANDS: '1' } });
  const { url, apiKey, namespace } = replicas.client;
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const source = { kind: 'mcp', command: [process.execPath, SERVER, 'stdio'] };
  for (const [method, route, body] of [
    ['POST', '/v1/environments', { name: 'counter', source }],
    ['PUT', `/v1/environments/${namespace}/counter/details`, { sessions: { capacity: 1 } }],
  ] as const) {
    const answer = await fetch(url + route, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
  }
});
afterAll(() => replicas?.stop());

const connect = () => {
  const { url, apiKey, namespace } = replicas.client;
  return connectMcp(`${url}/mcp/${namespace}/counter`, { 'x-api-key': apiKey });
};

test('requests find the process of their session, whichever of them they reach', async () => {
  const { client, call, transport } = await connect();
  for (let count = 1; count <= 6; count += 1) expect((await call('add', { by: 1 })).text).toBe(String(count));
  expect((await client.listTools()).tools).toHaveLength(9);
  await transport.terminateSession();
});

test('whoever waits is given the slot that becomes free, on either process', async () => {
  const pids = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const { call, transport } = await connect();
      expect(await call('add', { by: 3 })).toMatchObject({ reward: 1, finished: true });
      const { text } = await call('pid');
      await transport.terminateSession();
      return text;
    }),
  );
  expect(new Set(pids).size).toBe(8);
});
