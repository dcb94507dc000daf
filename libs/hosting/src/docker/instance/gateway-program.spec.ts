import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Duplex } from 'node:stream';
import tls from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../process/free-port.ts';
import { gatewayProgram } from './gateway.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-gateway-'));
let upstream: net.Server;
let upstreamPort: number;
/** What the server at the other end of tunnels received. */
let received: Buffer[] = [];
let gateway: ChildProcess | null = null;

beforeAll(async () => {
  upstream = net.createServer((socket) => socket.on('error', () => {}).on('data', (data) => (received.push(data), socket.write('answer'))));
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  upstreamPort = (upstream.address() as AddressInfo).port;
});
afterEach(async () => {
  received = [];
  if (gateway === null) return;
  const ended = once(gateway, 'exit');
  gateway.kill('SIGKILL');
  await ended;
  gateway = null;
});
afterAll(() => {
  upstream.close();
  rmSync(folder, { recursive: true });
});

/** Starts the program that runs in gateways. Port 443 is that of the server here. */
async function start(given: { hosts: string[] | null; policy?: object }): Promise<number> {
  const port = await freePort();
  const proxy = { host: '127.0.0.1', port, refused: [], reachable: ['127.0.0.0/8', '::1'], policy: null, plain: [], ...given };
  const text = gatewayProgram()
    .replace('HTTPS_PORT = 443', `HTTPS_PORT = ${upstreamPort}`)
    .replace('/tmp/control.sock', path.join(folder, 'control.sock'));
  const PALESTRA_GATEWAY = JSON.stringify({ relay: null, proxy, lifetimeMs: null });
  gateway = spawn(process.execPath, ['--input-type=module', '-e', text], {
    env: { PALESTRA_GATEWAY },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await expect.poll(() => connects(port), { timeout: 10_000 }).toBe(true);
  return port;
}
const connects = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true))).on('error', () => resolve(false));
  });

/** The status of a CONNECT, and its socket. */
async function tunnel(port: number, target: string): Promise<{ status: number; socket: net.Socket }> {
  const request = http.request({ host: '127.0.0.1', port, method: 'CONNECT', path: target }).end();
  const [response, socket] = (await once(request, 'connect')) as [http.IncomingMessage, net.Socket];
  socket.on('error', () => {});
  return { status: response.statusCode!, socket };
}
/** What a client gets in a tunnel: the first bytes, or the end. */
async function answerTo(port: number, target: string, send: (socket: net.Socket) => void): Promise<string> {
  const { socket } = await tunnel(port, target);
  const answer = Promise.race([once(socket, 'data').then(([data]) => String(data)), once(socket, 'close').then(() => 'closed')]);
  send(socket);
  return answer.finally(() => socket.destroy());
}
const hello = (servername: string) => (socket: net.Socket) => {
  // Only what the client sends first.
  const wire = new Duplex({ read: () => {}, write: (bytes: Buffer, _, done) => (socket.write(bytes), done()) });
  tls.connect({ socket: wire, servername }).on('error', () => {});
};
const target = (host: string) => `${host}:${upstreamPort}`;

for (const [name, settings] of [
  ['a list of hosts', { hosts: ['LocalHost'] }],
  ['a policy', { hosts: null, policy: { rules: [{ action: 'allow', host: 'localhost', path: null, methods: null }], enforce: true } }],
] as const)
  test(`with ${name} a tunnel reaches only the server of its name`, async () => {
    const port = await start(settings as Parameters<typeof start>[0]);
    expect(await answerTo(port, target('localhost'), hello('LOCALHOST'))).toBe('answer');
    expect(received[0]!.includes('LOCALHOST')).toBe(true);
    received = [];
    for (const send of [
      hello('other.example'),
      hello(''),
      (socket: net.Socket) => void socket.write('GET / HTTP/1.1\r\nhost: other.example\r\n\r\n'),
      (socket: net.Socket) => void socket.write(Buffer.concat([Buffer.from([22, 3, 1, 64, 0, 1, 0, 255, 255]), Buffer.alloc(20_000)])),
    ])
      expect(await answerTo(port, target('localhost'), send)).toBe('closed');
    expect(received).toEqual([]);
    expect((await tunnel(port, `localhost:${upstreamPort - 1}`)).status).toBe(403);
    expect((await tunnel(port, target('other.example'))).status).toBe(403);
  });

test('a client that ends in the middle of its first message closes the tunnel', async () => {
  const port = await start({ hosts: ['localhost'] });
  const before = await connectionsOf(upstream);
  const { socket } = await tunnel(port, target('localhost'));
  await expect.poll(() => connectionsOf(upstream)).toBe(before + 1);
  socket.write(Buffer.from([22, 3, 1]));
  socket.destroy();
  await expect.poll(() => connectionsOf(upstream)).toBe(before);
});
const connectionsOf = (server: net.Server) => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));

test('an address that a list names, and every host without rules, has any protocol on any port', async () => {
  const plain = (socket: net.Socket) => void socket.write('SSH-2.0-x\r\n');
  const listed = await start({ hosts: ['127.0.0.1'] });
  expect(await answerTo(listed, target('127.0.0.1'), plain)).toBe('answer');
  gateway!.kill('SIGKILL');
  expect(await answerTo(await start({ hosts: null }), target('localhost'), plain)).toBe('answer');
  gateway!.kill('SIGKILL');
  const reported = await start({ hosts: null, policy: { rules: [], enforce: false } });
  expect(await answerTo(reported, target('localhost'), plain)).toBe('answer');
});
