import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { detectServer } from '@palestra/hosting';
import { declaredGuarantees } from './commands/env/guarantees.ts';
import { validateUrl } from './commands/env/validate-url.ts';
import { serverNames } from './completion/server-names.ts';
import { probeServer } from './doctor/server.ts';

/** A server that answers every request with a body without an end, and one whose bodies stall. */
const piece = Buffer.alloc(256 * 1024, ' ');
const endless = createServer((_, response) => {
  const write = () => {
    while (response.write(piece));
  };
  response.writeHead(200, { 'content-type': 'application/json' }).on('drain', write);
  write();
});
const stalled = createServer((_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('{'));
const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const { signal } = new AbortController();

beforeAll(async () => {
  for (const server of [endless, stalled]) await once(server.listen(0, '127.0.0.1'), 'listening');
  vi.stubEnv('PALESTRA_URL', urlOf(endless));
});
afterAll(() => {
  vi.unstubAllEnvs();
  for (const server of [endless, stalled]) {
    server.closeAllConnections();
    server.close();
  }
});

test('a body without an end is refused, and its connection closed', async () => {
  const url = urlOf(endless);
  await expect(detectServer(url, signal)).rejects.toThrow(/longer than/);
  expect(await declaredGuarantees(url, signal)).toBeNull();
  const { criteria } = await validateUrl(url, 60_000, signal);
  expect(criteria.map(({ details }) => details)).toContain('Request failed: The response is longer than 16000000 bytes.');
  expect((await probeServer({ PALESTRA_URL: url })).answer).toMatchObject({ status: 200, version: null });
  await expect(serverNames.environments()).rejects.toThrow();
  await expect(serverNames.runs()).rejects.toThrow();
  const open = () => new Promise((resolve) => endless.getConnections((_, count) => resolve(count)));
  await expect.poll(open, { timeout: 20_000 }).toBe(0);
});

test.each([
  ['detectServer', (url: string, stop: AbortSignal) => detectServer(url, stop)],
  ['declaredGuarantees', (url: string, stop: AbortSignal) => declaredGuarantees(url, stop)],
  ['validateUrl', (url: string, stop: AbortSignal) => validateUrl(url, 60_000, stop)],
])('%s stops at once when it is interrupted', async (_, ask) => {
  const interrupt = new AbortController();
  const asked = once(stalled, 'request');
  const asking = ask(urlOf(stalled), interrupt.signal);
  await asked;
  interrupt.abort(new Error('Ctrl-C'));
  await expect(asking).rejects.toThrow('Ctrl-C');
});
