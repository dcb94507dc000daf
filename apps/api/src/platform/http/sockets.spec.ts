import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PalestraError } from '@palestra/protocol';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { sendText, Sockets } from './sockets.ts';

const stop: (() => unknown)[] = [];
afterEach(() => Promise.all(stop.splice(0).map((one) => one())));

/** A server with one socket route, and what became of its sockets. */
async function start(pingMs: number) {
  const sockets = new Sockets(pingMs);
  const closed: string[] = [];
  const opened: WebSocket[] = [];
  sockets.add({
    pattern: /^\/of\/(?<name>[^/]+)$/,
    accept: async ({ raw }) => {
      if (raw.headers['x-api-key'] !== 'sk-1') throw new PalestraError('unauthorized');
      return { elsewhere: false, context: null, caller: { orgId: 'o', userId: 'u', keyId: null } };
    },
    open: (socket, { params }) => {
      opened.push(socket);
      socket.on('close', () => closed.push(params['name']!));
      // Every text twice, in both ways of sending one.
      socket.on('message', (data) => {
        sendText(socket, String(data));
        socket.ping();
        socket.send(String(data));
      });
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

test('a half-open peer, which hears nothing and never says goodbye, loses its socket; one that answers pings keeps it', async () => {
  const { sockets, closed, opened, connect } = await start(300);
  // Its connection stays open: it only does not answer.
  for (let count = 0; count < 20; count += 1) await connect('/k/sk-1/of/silent', { autoPong: false });
  const alive = await connect('/k/sk-1/of/alive');
  // The first ones may have been given up meanwhile.
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

test('texts of any size and script arrive as they are, in order', async () => {
  const { connect } = await start(10_000);
  const client = await connect('/k/sk-1/of/texts');
  const sizes = [0, 1, 125, 126, 127, 128, 255, 256, 65_535, 65_536, 200_000];
  const texts = [...sizes.map((size) => 'x'.repeat(size)), 'é', '\u007F\u0080', '🂡'.repeat(40_000), '{"a":"\\n"}'];
  const heard: string[] = [];
  client.on('message', (data) => heard.push(String(data)));
  for (const text of texts) client.send(text);
  await expect.poll(() => heard.length, { timeout: 20_000 }).toBe(2 * texts.length);
  expect(heard).toEqual(texts.flatMap((text) => [text, text]));
  client.close(1000);
  await once(client, 'close');
});

test('of many sockets that are answered in one turn each hears all of it in order, then the close', async () => {
  const { opened, connect } = await start(10_000);
  const clients = await Promise.all(Array.from({ length: 30 }, () => connect('/k/sk-1/of/many')));
  const heard = clients.map(() => [] as string[]);
  const ends = clients.map((client, number) => {
    client.on('message', (data) => heard[number]!.push(String(data)));
    return once(client, 'close');
  });
  for (const text of ['first', 'second']) for (const socket of opened) sendText(socket, text);
  for (const socket of opened) socket.close(1000);
  expect((await Promise.all(ends)).map(([code]) => code as number)).toEqual(clients.map(() => 1000));
  expect(heard).toEqual(clients.map(() => ['first', 'second']));
});
