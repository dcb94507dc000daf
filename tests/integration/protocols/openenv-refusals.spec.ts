import { describe, expect, onTestFinished, test } from 'vitest';
import { PalestraError } from '@palestra/protocol';
import { Client } from './openenv.world.ts';
import { useReplicas } from '../sessions/replicas.world.ts';
import type { Replica } from '../sessions/sessions.world.ts';

/** Options in headers, refusals when no session can be opened, and sessions that another process takes over. */
const replicas = useReplicas();
const BASE = '/openenv/acme/math';
const TOKEN = 'sk-"quoted"-0123456789';
const secrets = Buffer.from(JSON.stringify({ TOKEN: { value: TOKEN } })).toString('base64');

async function connect({ url }: Replica, path: string, headers: Record<string, string> = {}): Promise<Client> {
  const client = await Client.open(url + BASE + path, { 'x-api-key': 'alice', ...headers });
  onTestFinished(() => client.destroy());
  return client;
}

function post({ url }: Replica, path: string, body: object, headers: Record<string, string>): Promise<Response> {
  return fetch(url + BASE + path, { method: 'POST', headers: { 'x-api-key': 'alice', ...headers }, body: JSON.stringify(body) });
}

describe('X-Secrets', () => {
  test('of the upgrade reaches the environment and is masked everywhere else', async () => {
    const replica = await replicas.start({});
    const client = await connect(replica, '/ws', { 'x-secrets': secrets });
    await client.reset();
    expect([...replica.backend.secrets.values()]).toEqual([{ TOKEN: { value: TOKEN } }]);
    expect(JSON.stringify(await client.call('echo', { text: TOKEN }))).toContain('[secret:TOKEN]');
    await client.reset();
    expect([...replica.backend.secrets.values()]).toHaveLength(2);
    await client.close();
    const echoed = async () => (await replicas.query(`SELECT input, result FROM session_calls WHERE tool = 'echo'`)).rows;
    // A call of a socket is stored shortly after its reply.
    await expect.poll(echoed).toEqual([{ input: expect.any(String), result: expect.stringContaining('[secret:TOKEN]') }]);
    expect(JSON.stringify(await echoed())).not.toContain('0123456789');
  });

  test('of a request reaches the sessions that it opens', async () => {
    const replica = await replicas.start({});
    const given = () => [...replica.backend.secrets.values()];
    expect((await post(replica, '/reset', {}, { 'x-secrets': secrets })).status).toBe(200);
    expect(given()).toEqual([{ TOKEN: { value: TOKEN } }]);
    expect((await post(replica, '/container/one/reset', {}, { 'x-secrets': secrets })).status).toBe(200);
    expect(given()).toHaveLength(2);
    const rpc = { jsonrpc: '2.0', id: 1, method: 'openenv/session/create' };
    const { result } = (await (await post(replica, '/mcp', rpc, { 'x-secrets': secrets })).json()) as { result: { session_id: string } };
    const attached = await connect(replica, `/ws?session_id=${result.session_id}`);
    await attached.reset();
    expect(given()).toEqual(Array.from({ length: 3 }, () => ({ TOKEN: { value: TOKEN } })));
  });

  test('that cannot be decoded is refused first', async () => {
    const replica = await replicas.start({});
    await expect(connect(replica, '/ws', { 'x-secrets': '%%%' })).rejects.toThrow('HTTP 400');
    const answer = await post(replica, '/reset', {}, { 'x-secrets': '%%%' });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ code: 'secrets_invalid' });
    expect(replica.backend.secrets.size).toBe(0);
  });
});

describe('a socket that gets no session', () => {
  async function broken(): Promise<Replica> {
    const replica = await replicas.start({});
    replica.backend.create = async () => {
      throw new PalestraError('environment_failed', { detail: 'ValueError: ctor exploded' });
    };
    return replica;
  }
  const message = "Environment factory 'Math' failed to create instance.";
  const data = { factory_name: 'Math', detail: 'ValueError: ctor exploded' };
  const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'echo', arguments: {} }, id: 7 };

  test('of JSON-RPC gets an error and closes', async () => {
    const client = await connect(await broken(), '/mcp');
    expect(await client.ask(call)).toEqual({ jsonrpc: '2.0', id: 7, error: { code: -32000, message, data } });
    expect(await client.ended()).toEqual({ code: 1000, reason: '' });
  });

  test('with a JSON-RPC request as first message gets an error frame and closes', async () => {
    const client = await connect(await broken(), '/ws');
    expect(await client.ask({ type: 'mcp', data: call })).toEqual({ type: 'error', data: { message, code: 'FACTORY_ERROR', ...data } });
    expect(await client.ended()).toEqual({ code: 1000, reason: '' });
  });

  test('gets retryable errors over HTTP', async () => {
    const answer = await post(await broken(), '/mcp', call, {});
    expect(await answer.json()).toEqual({ jsonrpc: '2.0', id: 7, error: { code: -32000, message, data } });
  });
});

test('counts the steps of a virtual container that another process continues', async () => {
  const near = await replicas.start({});
  const far = await replicas.start({}, near.backend);
  const step = { action: { type: 'call_tool', tool_name: 'echo', arguments: { text: 'x' } } };
  await post(near, '/container/two/reset', {}, {});
  for (let n = 0; n < 2; n += 1) expect((await post(near, '/container/two/step', step, {})).status).toBe(200);
  const state = async ({ url }: Replica) =>
    (await (await fetch(`${url}${BASE}/container/two/state`, { headers: { 'x-api-key': 'alice' } })).json()) as object;
  // Deferred rows are in the ledger shortly afterwards.
  await expect.poll(async () => (await replicas.query(`SELECT 1 FROM session_calls WHERE tool = 'echo'`)).rowCount).toBe(2);
  expect(await state(far)).toMatchObject({ step_count: 2 });
  expect((await post(far, '/container/two/step', step, {})).status).toBe(200);
  expect(await state(far)).toMatchObject({ step_count: 3 });
});
