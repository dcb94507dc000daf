import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { serve, type RunningServer } from '@palestra/environment-kit';
import { startScripted, type ScriptedServer } from '../../libs/openenv/src/client/scripted-server.fixture.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { gallery } from '../integration/protocols/mcp.world.ts';

/** Finding H2 of the audit: a tenant's URL leads to no address that the operator did not allow, and its answer is not read back. */

const SECRET = 'AKIA-secret-of-the-metadata-service';

/** A server that is not the tenant's; counts connections, also those that ask nothing. */
interface Victim {
  port: number;
  connections: number;
  requests: http.IncomingMessage[];
  answer: (request: http.IncomingMessage, response: http.ServerResponse) => void;
  stop(): Promise<void>;
}

async function startVictim(): Promise<Victim> {
  const server = http.createServer((request, response) => {
    victim.requests.push(request);
    victim.answer(request, response);
  });
  const victim: Victim = {
    port: 0,
    connections: 0,
    requests: [],
    answer: (_request, response) => response.end(SECRET),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  server.on('connection', () => (victim.connections += 1));
  // All addresses of this machine, IPv6 too where it has them.
  server.listen(0);
  await once(server, 'listening');
  victim.port = (server.address() as AddressInfo).port;
  return victim;
}

const KINDS = ['remote', 'openenv', 'mcp'] as const;
let names = 0;

async function register(server: TestServer, kind: string, url: string, name = `environment-${(names += 1)}`) {
  const answer = await server.request('POST', '/v1/environments', { body: { name, source: { kind, url } } });
  return { ...answer, text: JSON.stringify(answer.body), name: `${server.orgName}/${name}` };
}

/** What an upgrade, and the first message on its socket, are answered. */
async function play(server: TestServer, name: string): Promise<string> {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/openenv/${name}/ws`, { headers: { 'x-api-key': server.apiKey } });
  return new Promise((resolve) => {
    socket.once('unexpected-response', (_request, response: http.IncomingMessage) => {
      let body = '';
      response.on('data', (piece: Buffer) => (body += piece.toString())).on('end', () => resolve(body));
    });
    socket.once('open', () => socket.send('{"type":"reset","data":{}}'));
    socket.once('message', (data: Buffer) => resolve(data.toString()));
    socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`));
    socket.once('error', (error) => resolve(error.message));
  }).then((answer) => {
    socket.terminate();
    return String(answer);
  });
}

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim();
});
afterAll(() => victim?.stop());

describe('an exposed service', () => {
  let exposed: TestServer;
  beforeAll(async () => {
    exposed = await startServer({ host: '0.0.0.0', bundledEnvironments: true });
  });
  afterAll(() => exposed?.close());

  const hosts = [
    '127.0.0.1',
    'localhost',
    '127.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '127.0.0.2',
    '0.0.0.0',
    '0',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[::127.0.0.1]',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.0.1',
    '100.64.0.1',
    '169.254.169.254',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '[fd00::1]',
    '224.0.0.1',
  ];
  test.each(KINDS)('registers no server of kind %s in its own network', async (kind) => {
    const before = victim.connections;
    for (const host of hosts) {
      const open = await register(exposed, kind, `http://${host}:${victim.port}`);
      expect(open, host).toMatchObject({ status: 403, body: { code: 'upstream_address_refused' } });
      expect(open.body.detail, host).toContain('PALESTRA_ALLOW_PRIVATE_UPSTREAMS');
      const closed = await register(exposed, kind, `http://${host}:9`);
      expect(closed.text, host).toBe(open.text);
      expect((await register(exposed, kind, `https://${host}:${victim.port}/latest/meta-data`)).text, host).toBe(open.text);
    }
    expect(victim.connections).toBe(before);
  });

  test('adds no new version of an environment there', async () => {
    await exposed.request('POST', '/v1/environments', { body: { name: 'without-server' } });
    const source = { kind: 'remote', url: `http://127.0.0.1:${victim.port}` };
    const answer = await exposed.request('POST', `/v1/environments/${exposed.orgName}/without-server/versions`, { body: { source } });
    expect(answer).toMatchObject({ status: 403, body: { code: 'upstream_address_refused' } });
  });

  test('plays its own environments', async () => {
    const headers = { 'x-deployment': 'palestra/echo', 'x-session-id': crypto.randomUUID() };
    const created = await exposed.request('POST', '/create', { headers, body: { split: 'train', index: 0 } });
    expect(created.status).toBe(200);
    const called = await exposed.request('POST', '/call', { headers, body: { name: 'echo', input: { text: 'hello' } } });
    expect(called.body).toContain('hello');
  });

  test('checks an allowed address again for every connection', async () => {
    // The same rows, seen by a service that allows the address: as if a name had meant another address then.
    const lenient = await startServer({ databaseUrl: exposed.config.databaseUrl!, privateUpstreams: 'allowed' });
    const servers: { kind: (typeof KINDS)[number]; server: RunningServer | ScriptedServer | Victim; url: string }[] = [];
    try {
      const [ors, openenv, mcp] = await Promise.all([serve([gallery]), startScripted({ generation: 'E' }), startVictim()]);
      mcp.answer = answerMcp;
      servers.push({ kind: 'remote', server: ors, url: ors.url });
      servers.push({ kind: 'openenv', server: openenv, url: openenv.url });
      servers.push({ kind: 'mcp', server: mcp, url: `http://127.0.0.1:${mcp.port}` });
      for (const { kind, url } of servers) {
        const added = await register(lenient, kind, url, `moved-${kind}`);
        expect(added.status, added.text).toBe(200);
      }
      const asked = () => [mcp.connections, openenv.seen.length, openenv.sessions()];
      const before = asked();
      for (const { kind } of servers) {
        const name = `${exposed.orgName}/moved-${kind}`;
        const headers = { 'x-deployment': name, 'x-session-id': crypto.randomUUID() };
        const created = await exposed.request('POST', '/create', { headers, body: { split: 'train', index: 0 } });
        expect(created.body, kind).toMatchObject({ code: 'upstream_address_refused' });
        const tasks = await exposed.request('GET', `/v1/environments/${name}/tasks?split=train`);
        if (kind !== 'mcp') expect(tasks.body, kind).toMatchObject({ code: 'upstream_address_refused' });
        const view = await exposed.request('GET', `/v1/environments/${name}`);
        if (kind !== 'mcp') expect(view.body, kind).toMatchObject({ status: 'unreachable' });
        const reset = await exposed.request('POST', `/openenv/${name}/reset`, { body: {} });
        expect(JSON.stringify(reset.body), kind).toContain('does not connect');
        expect(await play(exposed, name), kind).toContain('does not connect');
      }
      expect(asked()).toEqual(before);
    } finally {
      await lenient.close();
      for (const { server } of servers) await ('stop' in server ? server.stop() : server.close());
    }
  });
});

test('reaches only networks that the operator names', async () => {
  const server = await startServer({ host: '0.0.0.0', privateUpstreams: ['127.0.0.0/8'] });
  const ors = await serve([gallery]);
  try {
    expect((await register(server, 'remote', ors.url)).status).toBe(200);
    expect((await register(server, 'remote', ors.url.replace('127.0.0.1', 'localhost'))).status).toBe(200);
    for (const host of ['[::1]', '0.0.0.0', '10.0.0.1', '169.254.169.254']) {
      expect((await register(server, 'remote', `http://${host}:${victim.port}`)).body, host).toMatchObject({
        code: 'upstream_address_refused',
      });
    }
  } finally {
    await ors.close();
    await server.close();
  }
});

describe('a service on loopback', () => {
  let local: TestServer;
  let other: Victim;
  beforeAll(async () => {
    [local, other] = await Promise.all([startServer(), startVictim()]);
  });
  afterAll(async () => {
    await local?.close();
    await other?.stop();
  });

  test.each(KINDS)('does not reach its database as a server of kind %s', async (kind) => {
    const { port } = new URL(local.config.databaseUrl!);
    for (const host of ['127.0.0.1', 'localhost', '0.0.0.0', '127.1', '[::ffff:127.0.0.1]', '[::1]']) {
      const answer = await register(local, kind, `http://${host}:${port}`);
      expect(answer.body, host).toMatchObject({ code: 'upstream_address_refused' });
    }
  });

  test('never reaches the metadata service of a cloud', async () => {
    for (const host of ['169.254.169.254', '[::ffff:169.254.169.254]', '[fd00:ec2::254]', '100.100.100.200']) {
      expect((await register(local, 'remote', `http://${host}/`)).body, host).toMatchObject({ code: 'upstream_address_refused' });
    }
  });

  const json = { 'content-type': 'application/json' };
  const bodies: [what: string, status: number, headers: Record<string, string>, body: string][] = [
    ['plain text', 200, {}, SECRET],
    ['a page', 404, { 'content-type': 'text/html' }, `<pre>${SECRET}</pre>`],
    ['JSON', 200, json, JSON.stringify({ AccessKeyId: SECRET, [SECRET]: 1 })],
    ['a list', 200, json, JSON.stringify([SECRET])],
    ['a detail', 500, json, JSON.stringify({ detail: SECRET })],
    ['a list of details', 422, json, JSON.stringify({ detail: [{ msg: SECRET, loc: [SECRET] }] })],
    [
      'an answer of JSON-RPC',
      200,
      json,
      JSON.stringify({ jsonrpc: '2.0', id: 0, error: { code: -32_600, message: SECRET, data: SECRET } }),
    ],
    ['another answer of JSON-RPC', 200, json, JSON.stringify({ jsonrpc: '2.0', id: 0, result: { [SECRET]: SECRET } })],
    ['events', 200, { 'content-type': 'text/event-stream' }, `data: ${SECRET}\n\n`],
    ['a redirect', 307, { location: `http://${SECRET}.example/${SECRET}` }, SECRET],
    ['odd headers', 200, { 'content-type': `text/${SECRET}` }, SECRET],
  ];
  test.each(bodies)('the response of a server with %s is not shown', async (_, status, headers, body) => {
    victim.answer = (_request, response) => response.writeHead(status, headers).end(body);
    for (const kind of KINDS) {
      const answer = await register(local, kind, `http://127.0.0.1:${victim.port}`);
      expect(answer.status, kind).toBe(400);
      expect(answer.text.toLowerCase(), kind).not.toContain(SECRET.toLowerCase().slice(0, 9));
    }
  });

  test('calls show neither the response nor the address', async () => {
    const openenv = await startScripted({
      generation: 'C',
      onGet: (path, response) => path === '/state' && (response.writeHead(500).end(SECRET), true),
    });
    const name = (await register(local, 'openenv', openenv.url)).name;
    const state = await local.request('GET', `/openenv/${name}/state`);
    expect(state.status).toBe(500);
    expect(JSON.stringify(state.body)).not.toContain(SECRET);
    await openenv.stop();
    const view = await local.request('GET', `/v1/environments/${name}`);
    expect(view.body).toMatchObject({ status: 'unreachable', status_detail: expect.not.stringContaining('127.0.0.1') });
  });

  test.each([301, 302, 303, 307, 308])('a redirect (%i) sends neither a request nor credentials to another origin', async (status) => {
    const targets = [`http://127.0.0.1:${other.port}`, `http://localhost:${victim.port}`, 'http://169.254.169.254'];
    const secrets = Buffer.from(JSON.stringify({ TOKEN: { value: 'a-secret-of-the-client' } })).toString('base64');
    for (const target of targets) {
      let redirecting = false;
      victim.answer = (request, response) => {
        if (redirecting) response.writeHead(status, { location: `${target}${request.url ?? ''}` }).end();
        else answerMcp(request, response);
      };
      const mcp = await register(local, 'mcp', `http://127.0.0.1:${victim.port}/mcp`);
      expect(mcp.status, mcp.text).toBe(200);
      redirecting = true;
      victim.requests.length = 0;
      for (const kind of KINDS) expect((await register(local, kind, `http://127.0.0.1:${victim.port}`)).status).toBe(400);
      const headers = { 'x-deployment': mcp.name, 'x-session-id': crypto.randomUUID(), 'x-secrets': secrets };
      expect((await local.request('POST', '/create', { headers, body: { task_spec: {} } })).status).toBeGreaterThanOrEqual(400);
      expect(victim.requests.every(({ headers: sent }) => sent.host === `127.0.0.1:${victim.port}`)).toBe(true);
    }
    expect(other.connections).toBe(0);
  });
});

/** A small MCP server without streams. */
function answerMcp(request: http.IncomingMessage, response: http.ServerResponse): void {
  let body = '';
  request.on('data', (piece: Buffer) => (body += piece.toString()));
  request.on('end', () => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method, params } = JSON.parse(body) as { id?: number; method: string; params?: { protocolVersion?: string } };
    if (id === undefined) return void response.writeHead(202).end();
    const results: Record<string, object> = {
      initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'small', version: '1' } },
      'tools/list': { tools: [{ name: 'look', inputSchema: { type: 'object' } }] },
    };
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
  });
}
