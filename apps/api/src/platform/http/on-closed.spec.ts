import { once } from 'node:events';
import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { onClosed } from './on-closed.ts';

test.each(['before', 'after'])('calls back once for a client that leaves %s the callback is added', async (when) => {
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => void responses.push(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const client = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  client.on('error', () => {});
  await expect.poll(() => responses.length).toBe(1);
  const response = responses[0]!;
  let ended = 0;
  if (when === 'after') onClosed(response, () => (ended += 1));
  client.destroy();
  await expect.poll(() => response.closed).toBe(true);
  if (when === 'before') onClosed(response, () => (ended += 1));
  expect(ended).toBe(1);
});
