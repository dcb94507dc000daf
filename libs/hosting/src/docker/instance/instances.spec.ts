import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Engine } from '../engine/engine.ts';
import { LABEL } from '../engine/names.ts';
import { LogReaders } from './instance-logs.ts';
import { Instances } from './instances.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-instances-'));
const socketPath = path.join(folder, 'engine.sock');
const engine = new Engine({ host: `unix://${socketPath}` });
const container = (id: string, State: string) => ({ Id: id, State, Labels: { [LABEL.instance]: id, [LABEL.role]: 'server' } });
const ended = { State: { Running: false, ExitCode: 3, StartedAt: '2026-01-01T00:00:00Z' }, HostConfig: { Memory: 0 } };

const answers: Record<string, [status: number, body: object]> = {
  '/containers/json': [200, [container('good', 'exited'), container('bad', 'exited'), container('odd', 'running')]],
  '/networks': [200, []],
  '/containers/good/json': [200, ended],
  // As Docker answers after the machine was switched off or its disk was full.
  '/containers/bad/json': [500, { message: 'RWLayer of container bad is unexpectedly nil' }],
  '/containers/odd/json': [500, { message: 'layer not known' }],
};
const server = http.createServer((request, response) => {
  const [status, body] = answers[request.url!.split('?')[0]!] ?? [404, { message: 'nothing' }];
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});

beforeAll(async () => {
  server.listen(socketPath);
  await once(server, 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

test('a container that the engine cannot inspect hides no other, and has ended if it does not run', async () => {
  const options = { engine, installation: 'x', gatewayImage: async () => '', network: null, reachable: [], logs: new LogReaders(engine) };
  const found = await new Instances(options).list(new AbortController().signal);
  expect(found.map(({ id, state, exit }) => [id, state, exit?.reason])).toEqual([
    ['good', 'exited', 'The server ended with status 3.'],
    ['bad', 'exited', 'The engine cannot say how the server ended: RWLayer of container bad is unexpectedly nil'],
    ['odd', 'starting', undefined],
  ]);
});
