import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { countRequest, onDelivery } from './delivery.ts';

/** Reads the answer, and leaves 300 ms later. */
const CLIENT = `
  const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1');
  socket.write('GET / HTTP/1.1\\r\\nhost: x\\r\\nuser-agent: aiohttp/3\\r\\n\\r\\n');
  socket.once('data', () => setTimeout(() => socket.destroy(), 300));`;

test('a client that left soon after an answer did not receive it, also if this process paused meanwhile', async () => {
  const reports: string[] = [];
  let isSent = false;
  const server = createServer((raw, response) => {
    const request = { raw, headers: raw.headers } as FastifyRequest;
    countRequest(request);
    onDelivery(request, { raw: response } as FastifyReply, (delivery) => reports.push(delivery));
    response.end('an answer', () => (isSent = true));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const client = spawn(process.execPath, ['-e', CLIENT, String((server.address() as AddressInfo).port)], { stdio: 'inherit' });
  await expect.poll(() => isSent, { timeout: 10_000, interval: 5 }).toBe(true);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
  await expect.poll(() => reports).toEqual(['undelivered']);
  if (client.exitCode === null) await once(client, 'exit');
});
