import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { HealthCheck } from './health.ts';

test('reports and caches the health of a server with its reason', async () => {
  let asked = 0;
  let status = 200;
  const server = http.createServer((_request, response) => {
    asked += 1;
    response.writeHead(status).end('{"status":"ok"}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let now = 0;
  const clock = { now: () => now, after: () => () => {}, sleep: async () => {} };
  const health = new HealthCheck(url, { clock });

  expect(await health.report()).toMatchObject({ healthy: true, detail: null });
  await Promise.all([health.report(), health.report()]);
  expect(asked).toBe(1);

  status = 500;
  now = 11_000;
  expect(await health.report()).toMatchObject({ healthy: false, detail: 'GET /health answered 500' });

  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  now = 30_000;
  expect((await health.report()).detail).toContain('ECONNREFUSED');
});
