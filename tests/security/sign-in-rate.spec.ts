import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startServer, type TestServer } from '../support/server.ts';

/** Finding M6 of the audit: unauthenticated clients can neither guess without limit nor hold the service's connections. */

const guess = () => `or_${randomBytes(32).toString('base64url')}`;
const times = <T>(count: number, make: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));
const counted = (statuses: number[]) =>
  Object.fromEntries([...new Set(statuses)].map((one) => [one, statuses.filter((x) => x === one).length]));

describe('M6: wrong credentials of one address', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server?.close());

  const attempts: [name: string, attempt: (origin: string, index: number) => Promise<Response>][] = [
    ['keys', (origin) => fetch(`${origin}/v1/me`, { headers: { 'x-api-key': guess() } })],
    ['keys in the path', (origin) => fetch(`${origin}/k/${guess()}/v1/me`)],
    [
      'keys of uploads',
      (origin) => fetch(`${origin}/v1/rollouts`, { method: 'POST', body: '{}', headers: { authorization: `Bearer ${guess()}` } }),
    ],
    ['keys of the session plane', (origin) => fetch(`${origin}/create_session`, { method: 'POST', headers: { 'x-api-key': guess() } })],
    [
      'pasted keys',
      (origin) =>
        fetch(`${origin}/v1/login`, {
          method: 'POST',
          body: JSON.stringify({ key: guess() }),
          headers: { 'content-type': 'application/json' },
        }),
    ],
    ['sign-in links', (origin) => fetch(`${origin}/login?token=${guess()}`, { redirect: 'manual' })],
    [
      'confirmed links',
      (origin) => fetch(`${origin}/login`, { method: 'POST', body: new URLSearchParams({ token: guess() }), redirect: 'manual' }),
    ],
    ['share links', (origin) => fetch(`${origin}/share/${guess()}`)],
    ['images of share links', (origin) => fetch(`${origin}/share/${guess()}/image.png`)],
    // Whatever a client says of its address.
    [
      'keys with a forged address',
      (origin, index) =>
        fetch(`${origin}/v1/me`, {
          headers: { 'x-api-key': guess(), 'x-forwarded-for': `198.51.100.${index}`, forwarded: `for=${index}` },
        }),
    ],
  ];

  test.each(attempts)('%s', async (_name, attempt) => {
    const answers = await times(200, (index) => attempt(server.url, index));
    const refused = answers.filter(({ status }) => status === 429);
    // Sixty a minute, of two minutes at most.
    expect(refused.length).toBeGreaterThanOrEqual(80);
    expect(Number(refused[0]!.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await refused[0]!.json()).toMatchObject({ code: 'rate_limited' });
    // Whoever has a valid key does not notice, also behind the same address.
    expect(counted((await times(50, () => server.request('GET', '/v1/me'))).map(({ status }) => status))).toEqual({ 200: 50 });
    const login = await server.request('POST', '/v1/login', { headers: { 'x-api-key': '' }, body: { key: server.apiKey } });
    expect(login.status).toBe(200);
  });

  test('sockets', async () => {
    const open = () =>
      new Promise<number>((resolve) => {
        const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/text-sessions/ws`, { headers: { 'x-api-key': guess() } });
        socket.on('error', () => {});
        socket.once('unexpected-response', (_request, answer) => resolve(answer.statusCode!));
      });
    expect((await times(200, open)).filter((status) => status === 429).length).toBeGreaterThanOrEqual(80);
  });

  test('a new key works from an address that failed before', async () => {
    const { body } = await server.request('POST', '/v1/keys', { body: { name: 'new', scopes: ['rollouts'] } });
    await times(100, () => fetch(`${server.url}/v1/me`, { headers: { 'x-api-key': guess() } }));
    expect((await fetch(`${server.url}/v1/me`, { headers: { 'x-api-key': body.key } })).status).toBe(200);
  });
});

test('M6: requests without any key', async () => {
  const server = await startServer({ unauthenticatedLimits: { failures: 60, requests: 100 } });
  try {
    const paths = ['/v1/runs', '/v1/environments', '/openenv/palestra/echo_env/schema', '/list_environments'];
    const answers = await times(400, (index) => fetch(server.url + paths[index % paths.length]!));
    expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(200);
    expect(counted((await times(50, () => server.request('GET', '/v1/me'))).map(({ status }) => status))).toEqual({ 200: 50 });
    // A query that ends like the path of a probe does not make the request a probe.
    const disguised = ['/v1/runs?x=/health', '/v1/environments?search=/health/live', '/list_environments?/health?'];
    expect(counted(await times(30, async (index) => (await fetch(server.url + disguised[index % disguised.length]!)).status))).toEqual({
      429: 30,
    });
    // A load balancer has no key.
    expect(counted((await times(50, () => fetch(`${server.url}/health`))).map(({ status }) => status))).toEqual({ 200: 50 });
  } finally {
    await server.close();
  }
});

test('M6: behind a trusted proxy each client has its own attempts', async () => {
  const server = await startServer({ trustedProxies: ['loopback'] });
  try {
    const attempt = (client: string) => fetch(`${server.url}/v1/me`, { headers: { 'x-api-key': guess(), 'x-forwarded-for': client } });
    // A client may write an address of its choice before the one that the proxy adds.
    const attacker = await times(100, (index) => attempt(`203.0.113.${index}, 198.51.100.7`));
    expect(counted(attacker.map(({ status }) => status))).toEqual({ 401: 60, 429: 40 });
    expect((await attempt('198.51.100.8')).status).toBe(401);
    const neighbours = await times(100, (index) => attempt(`2001:db8:1:2::${index.toString(16)}`));
    expect(counted(neighbours.map(({ status }) => status))).toEqual({ 401: 60, 429: 40 });
  } finally {
    await server.close();
  }
});

describe('M6: half-sent requests', () => {
  let server: TestServer;
  const sockets: Socket[] = [];
  beforeAll(async () => {
    server = await startServer();
  });
  afterEach(() => sockets.splice(0).forEach((socket) => socket.destroy()));
  afterAll(() => server?.close());

  async function send(text: string): Promise<Socket & { heard: string }> {
    const { port, hostname } = new URL(server.url);
    const socket = Object.assign(connect({ port: Number(port), host: hostname, allowHalfOpen: true }), { heard: '' });
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (data) => (socket.heard += data.toString()));
    await once(socket, 'connect');
    socket.write(text);
    return socket;
  }
  /** A client keeps its side open; whether the service still has its own shows when something is written to it. */
  const isOpen = (socket: Socket) => {
    if (socket.readableEnded && !socket.destroyed) socket.write(' ');
    return !socket.destroyed;
  };
  const AT_ONCE = { timeout: 20_000, interval: 250 };
  const IN_TIME = { timeout: 60_000, interval: 500 };

  test('800 unauthenticated connections end without an effect on others', async () => {
    const halves = [
      () => '',
      () => 'GET / HTTP/1.1\r\n',
      () => 'POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
      () => 'POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
      () =>
        'GET /v1/text-sessions/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      () => 'no request at all\r\n\r\n',
      () => 'PUT /blobs/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n',
      () => `POST /v1/rollouts HTTP/1.1\r\nHost: x\r\nX-API-Key: ${guess()}\r\nContent-Length: 100000\r\n\r\n{`,
    ];
    const stream = new AbortController();
    const followed = await fetch(`${server.url}/v1/stream`, { headers: { 'x-api-key': server.apiKey }, signal: stream.signal });
    const attack = await times(800, (index) => send(halves[index % halves.length]!()));
    await expect.poll(() => attack.filter(isOpen).length, AT_ONCE).toBeLessThanOrEqual(256);
    expect((await server.request('GET', '/v1/me')).status).toBe(200);
    await expect.poll(() => attack.filter(isOpen).length, IN_TIME).toBe(0);
    expect(attack.find(({ heard }) => heard.startsWith('HTTP/1.1 408'))?.heard).toContain('"code":"invalid_request"');
    // A stream that nothing was said on meanwhile goes on.
    const reader = followed.body!.getReader();
    expect((await reader.read()).done).toBe(false);
    stream.abort();
  });

  test('dripping bodies are ended, also with a key; slow bodies with progress arrive', async () => {
    const head = (path: string, length: number, key: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\n${key && `X-API-Key: ${key}\r\n`}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    const dripping = [
      await send(head('/v1/login', 60_000, '')),
      await send(head('/v1/rollouts', 60_000_000, server.apiKey)),
      await send(head('/v1/views', 60_000, server.apiKey)),
    ];
    const events = [{ eventType: 'rollout', eventId: crypto.randomUUID(), timestamp: 1, runName: 'slow' }];
    const body = JSON.stringify({ events }).padEnd(180_000, ' ');
    const honest = await send(head('/v1/rollouts', body.length, server.apiKey));
    let sent = 0;
    const drip = setInterval(() => {
      for (const socket of dripping) if (isOpen(socket)) socket.write(' ');
      if (sent >= body.length || !isOpen(honest)) return;
      honest.write(body.slice(sent, sent + 4_000));
      sent += 4_000;
    }, 1_000);
    await expect.poll(() => dripping.filter(isOpen).length, { timeout: 90_000, interval: 500 }).toBe(0);
    await expect.poll(() => honest.heard, { timeout: 90_000, interval: 500 }).toContain('HTTP/1.1 200');
    clearInterval(drip);
  });
});
