import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { OpenEnvConnection } from './connection.ts';

const stop: (() => unknown)[] = [];
afterEach(() => Promise.all(stop.splice(0).map((one) => one())));

test('sends requests that cannot be repeated on new connections only', async () => {
  // As uvicorn: the connection of a failed request ends, but its client may not have noticed yet.
  const failed = new Set<Socket>();
  const server = createServer((request, response) => {
    const { socket } = request;
    if (failed.has(socket)) return void socket.destroy();
    if (request.method === 'POST') return void response.end('{"jsonrpc":"2.0","id":1,"result":{}}');
    failed.add(socket);
    response.statusCode = 500;
    response.end('Internal Server Error');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stop.push(() => server.close());
  const connection = new OpenEnvConnection(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  stop.unshift(() => connection.close());
  const soon = AbortSignal.timeout(25_000);
  for (let round = 0; round < 3; round += 1) {
    expect(await connection.get('/metadata', soon)).toMatchObject({ status: 500 });
    // By now the connection is free again in its client's eyes.
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(await connection.rpc('openenv/session/create', {}, 'unsent', soon)).toMatchObject({ result: {} });
  }
});
