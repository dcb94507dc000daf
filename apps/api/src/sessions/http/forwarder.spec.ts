import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Forwarder } from './forwarder.ts';

test('very many long requests to a process hold up no other one', async () => {
  let waiting = 0;
  const server = createServer((request, response) => {
    if (request.url === '/quick') return void response.end('{}');
    waiting += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const forwarder = new Forwarder('one', () => {});
  onTestFinished(async () => {
    await forwarder.close();
    server.closeAllConnections();
    server.close();
  });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const get = (path: string) => forwarder.ask(address, {}, { method: 'GET', path, body: null });
  // In steps, because a server accepts only some hundred connections at a time.
  for (let sent = 0; sent < 1_100;) {
    for (; sent < Math.min(1_100, waiting + 100); sent += 1) void get('/slow');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(await get('/quick')).toEqual({ status: 200, body: {} });
});
