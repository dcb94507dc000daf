import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Cluster } from '../cluster/cluster.ts';
import { runInContainer } from './container-run.ts';

test('a command waits for an API server that restarts', async () => {
  const server = http.createServer((_request, response) => response.writeHead(404).end('{"reason":"NotFound"}'));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const cluster = { namespace: 'n', socket: async () => ({ url: `ws://127.0.0.1:${port}/`, options: {} }) } as unknown as Cluster;
  const streams = { input: null, onOutput: () => {}, onError: () => {} };
  const running = runInContainer({ cluster, pod: 'p', container: 'c' }, ['true'], streams, AbortSignal.timeout(20_000));
  running.catch(() => {});
  await sleep(300);
  await once(server.listen(port, '127.0.0.1'), 'listening');
  // The answer of the API server, which has no such pod.
  await expect(running).rejects.toMatchObject({ status: 404 });
});
