import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { Forwarder } from './forwarder.ts';

async function listen(onRequest: RequestListener): Promise<string> {
  const server: Server = createServer(onRequest).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a stream of another process ends if its client left before it was forwarded', async () => {
  const streams: ServerResponse[] = [];
  const owner = await listen((_request, response) => {
    streams.push(response);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: 1\n\n');
  });
  const received: [IncomingMessage, ServerResponse][] = [];
  const address = await listen((request, response) => void received.push([request, response]));
  const client = get(address);
  client.on('error', () => {});
  await expect.poll(() => received.length).toBe(1);
  const [request, response] = received[0]!;
  client.destroy();
  await expect.poll(() => response.closed).toBe(true);
  const forwarder = new Forwarder('here', () => {});
  onTestFinished(() => forwarder.close());
  const incoming = { raw: request, method: 'GET', headers: request.headers } as FastifyRequest;
  const reply = { raw: response, hijack: () => {} } as unknown as FastifyReply;
  expect(await forwarder.pass(incoming, reply, owner)).toBe('answered');
  await expect.poll(() => streams[0]!.closed, { timeout: 5_000 }).toBe(true);
});

test('very many long requests to a process hold up no other one', async () => {
  let waiting = 0;
  const address = await listen((request, response) => {
    if (request.url === '/quick') return void response.end('{}');
    waiting += 1;
  });
  const forwarder = new Forwarder('here', () => {});
  onTestFinished(() => forwarder.close());
  const ask = (path: string) => forwarder.ask(address, {}, { method: 'GET', path, body: null });
  // In steps, because a server accepts only some hundred connections at a time.
  for (let sent = 0; sent < 1_100;) {
    for (; sent < Math.min(1_100, waiting + 100); sent += 1) void ask('/slow');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(await ask('/quick')).toEqual({ status: 200, body: {} });
});
