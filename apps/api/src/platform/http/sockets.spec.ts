import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PalestraError } from '@palestra/protocol';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { Sockets } from './sockets.ts';

const stop: (() => unknown)[] = [];
afterEach(() => Promise.all(stop.splice(0).map((one) => one())));

/** A server with one socket route, and the states of its sockets. */
async function start(pingMs: number) {
  const sockets = new Sockets(pingMs);
  const closed: string[] = [];
  const opened: WebSocket[] = [];
  sockets.add({
    pattern: /^\/of\/(?<name>[^/]+)$/,
    accept: async ({ raw }) => {
      if (raw.headers['x-api-key'] !== 'sk-1') throw new PalestraError('unauthorized');
      return { isForwarded: false, context: null, caller: { orgId: 'o', userId: 'u', keyId: null } };
    },
    open: (socket, { params }) => {
      opened.push(socket);
      socket.on('close', () => closed.push(params['name']!));
      socket.on('message', (data) => socket.send(String(data)));
    },
  });
  const server = createServer();
  sockets.listen(server, null);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stop.push(() => (sockets.close(), server.closeAllConnections(), server.close()));
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connect = async (path: string, options = {}) => {
    const client = new WebSocket(url + path, options);
    client.on('error', () => {});
    stop.unshift(() => client.terminate());
    await once(client, 'open');
    return client;
  };
  return { sockets, closed, opened, url, connect };
}

test('a half-open peer, which neither responds nor closes, loses its socket; a peer that answers pings keeps it', async () => {
  const { sockets, closed, opened, connect } = await start(300);
  // Its connection stays open, but it does not answer.
  for (let count = 0; count < 20; count += 1) await connect('/k/sk-1/of/silent', { autoPong: false });
  const alive = await connect('/k/sk-1/of/alive');
  // The first ones may have been terminated already.
  expect(opened).toHaveLength(21);
  await expect.poll(() => closed.length, { timeout: 20_000 }).toBe(20);
  expect(new Set(closed)).toEqual(new Set(['silent']));
  await new Promise((resolve) => setTimeout(resolve, 900));
  expect([sockets.size, alive.readyState]).toEqual([1, WebSocket.OPEN]);
});

test.each([
  ['/of/alive', 401],
  ['/k/wrong/of/alive', 401],
  ['/k/sk-1/nowhere', 404],
  ['/k/sk-1/of/%zz', 404],
])('%s is answered before the upgrade with %i', async (path, status) => {
  const { url } = await start(10_000);
  const client = new WebSocket(url + path);
  client.on('error', () => {});
  const [, response] = (await once(client, 'unexpected-response')) as [unknown, { statusCode: number }];
  expect(response.statusCode).toBe(status);
  client.terminate();
});
