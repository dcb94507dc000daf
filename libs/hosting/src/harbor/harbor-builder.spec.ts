import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Engine } from '../docker/engine/engine.ts';
import { HarborBuilder, type HarborRequest } from './harbor-builder.ts';
import { manifestFile } from './harbor-files.ts';

const root = mkdtempSync(path.join(tmpdir(), 'palestra-harbor-'));
const socketPath = path.join(root, 'engine.sock');
const engine = new Engine({ host: `unix://${socketPath}` });
let hasImages = true;
const server = http.createServer(({ url }, response) => {
  const isThere = url!.startsWith('/images/') ? hasImages : true;
  response.writeHead(isThere ? 200 : 404, { 'content-type': 'application/json' }).end('{"Id":"sha256:1","Version":"1"}');
});

beforeAll(async () => {
  server.listen(socketPath);
  await once(server, 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(root, { recursive: true });
});

const source = path.join(root, 'source');
for (const name of ['environment', 'tests']) mkdirSync(path.join(source, name), { recursive: true });
for (const [name, text] of [
  ['task.toml', 'version = "1.0"\n'],
  ['instruction.md', 'Do it.\n'],
  ['environment/Dockerfile', 'FROM scratch\n'],
  ['tests/test.sh', '#!/bin/bash\n'],
] as const)
  writeFileSync(path.join(source, name), text);

test('a build whose images or manifest are gone is no build, and is made again', async () => {
  let built = 0;
  const builder = new HarborBuilder({
    engine,
    folder: path.join(root, 'harbor'),
    buildImage: async () => {
      built += 1;
      return { kind: 'image', digest: 'sha256:1', image: 'sha256:1', port: 1 };
    },
    runOf: async () => ({}) as never,
  });
  const resources = { cpus: 1, memoryMb: 512, pids: 100, diskMb: 100, gpus: 0 };
  const request: HarborRequest = {
    deployId: 'd',
    sourceDigest: 'sha256:source',
    source: { kind: 'folder', folder: source, plan: { kind: 'harbor', tasks: ['.'] } },
    buildArguments: {},
    limits: { seconds: 60, memoryMb: 512, maxBytes: 1e9, network: true },
    run: { resources, egress: { kind: 'open' }, isolation: 'container', variables: {}, secrets: {} },
  };
  const { signal } = new AbortController();
  const build = () => builder.build(request, () => {}, signal);
  const artifact = await build();
  if (artifact.kind !== 'harbor') throw new Error('it is no build of Harbor');
  await build();
  expect([built, await builder.has(artifact, signal)]).toEqual([1, true]);
  hasImages = false;
  expect(await builder.has(artifact, signal)).toBe(false);
  await build();
  hasImages = true;
  expect([built, await builder.has(artifact, signal)]).toEqual([2, true]);
  writeFileSync(manifestFile(artifact.folder), '');
  expect(await builder.has(artifact, signal)).toBe(false);
  await build();
  expect([built, await builder.has(artifact, signal)]).toEqual([3, true]);
});
