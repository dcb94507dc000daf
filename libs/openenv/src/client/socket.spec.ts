import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test, type TestContext, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { KeepAlive } from './keep-alive.ts';
import { OpenEnvConnection } from './connection.ts';
import { UpstreamSocket } from './socket.ts';

async function serve({ onTestFinished }: Pick<TestContext, 'onTestFinished'>, options: { autoPong: boolean }) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, ...options });
  await once(server, 'listening');
  onTestFinished(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  return { server, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

test.concurrent.for([true, false])(
  'a server is pinged, and given up when it says nothing for long (it answers pings: %s)',
  async (autoPong, running) => {
    const { server, url } = await serve(running, { autoPong });
    let pings = 0;
    server.on('connection', (socket) => socket.on('ping', () => (pings += 1)));
    const socket = await UpstreamSocket.open({ url, headers: {} }, AbortSignal.timeout(25_000));
    const keepAlive = new KeepAlive({ pingMs: 50, silenceMs: 4_000 });
    running.onTestFinished(() => keepAlive.stop());
    keepAlive.add(socket);
    if (autoPong) await pause(5_000);
    else await running.expect.poll(() => socket.isOpen).toBe(false);
    expect(pings).toBeGreaterThan(3);
    expect(socket.isOpen).toBe(autoPong);
  },
);

test('a server that answers is kept when the clock of the machine is set', async (running) => {
  const { server, url } = await serve(running, { autoPong: true });
  const connected = once(server, 'connection');
  const socket = await UpstreamSocket.open({ url, headers: {} }, AbortSignal.timeout(25_000));
  const [client] = (await connected) as [WebSocket];
  const keepAlive = new KeepAlive({ pingMs: 50, silenceMs: 60_000 });
  running.onTestFinished(() => keepAlive.stop());
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
  running.onTestFinished(() => void vi.useRealTimers());
  keepAlive.add(socket);
  for (let ping = 0; ping < 2; ping += 1) await once(client, 'ping');
  expect(socket.isOpen).toBe(true);
});

test('a key in the URL goes into a header, and nowhere else', async (running) => {
  const { server } = await serve(running, { autoPong: true });
  const { port } = server.address() as AddressInfo;
  const connection = new OpenEnvConnection(`http://key:s%40cret@127.0.0.1:${port}/openenv/acme/echo/?api_key=x`);
  expect(connection.socketUrl).toBe(`ws://127.0.0.1:${port}/openenv/acme/echo/ws`);
  const connected = once(server, 'connection');
  await UpstreamSocket.open({ url: connection.socketUrl, headers: connection.headers }, AbortSignal.timeout(25_000));
  const [, request] = (await connected) as [unknown, { url: string; headers: Record<string, string> }];
  expect(request.url).toBe('/openenv/acme/echo/ws');
  expect(request.headers['authorization']).toBe(`Basic ${Buffer.from('key:s@cret').toString('base64')}`);
  await connection.close();
});
