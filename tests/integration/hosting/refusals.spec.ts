import { once } from 'node:events';
import { type IncomingMessage, request as send } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { saveEngine } from '../../../apps/api/src/environments/hosting/providers/engine.sql.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { type DeploysWorld, startDeploys } from './deploys.world.ts';

/** What a service refuses before it reads a source. */
let world: DeploysWorld;
let off: TestServer;
beforeAll(async () => {
  world = await startDeploys();
  const { hosting } = world.server.config;
  off = await startServer({ hosting: { ...hosting, engine: 'off' } });
});
afterAll(async () => {
  await off?.close();
  await world?.close();
});

const created = async (server: TestServer, name: string) =>
  (await server.request('POST', '/v1/environments', { body: { name, description: '' } })).body as { id: string };

test('a source that is announced as too large', async () => {
  const { server } = world;
  await created(server, 'large');
  const request = send(`${server.url}/v1/environments/${server.orgName}/large/deploys`, {
    method: 'POST',
    headers: { 'x-api-key': server.apiKey, 'content-type': 'application/gzip', 'content-length': 600 * 1024 ** 2 },
  });
  request.flushHeaders();
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  expect(answer.statusCode).toBe(413);
  expect(await json(answer)).toMatchObject({ code: 'source_too_large', detail: expect.stringContaining('.dockerignore') });
  request.destroy();
});

test('a folder where the engine builds none, before it is uploaded; an image goes on', async () => {
  const server = await startServer({ jobs: 'off' });
  try {
    // As the process with background jobs sees a cluster without a registry.
    const cluster = { isolation: ['none', 'container'], egress: ['none', 'open'], gpus: false, limits: true } as const;
    await saveEngine(server.database.pool, 'kubernetes', { ...cluster, maxMemoryMb: null, builds: false }, null);
    await created(server, 'unbuilt');
    const path = `/v1/environments/${server.orgName}/unbuilt/deploys`;
    const refused = { code: 'hosting_unsupported', detail: expect.stringMatching(/"kubernetes" .*builds no folders.*--image/) };
    const git = { source: { kind: 'git', url: 'https://git.example/acme/guess.git' } };
    expect(await server.request('POST', path, { body: git })).toMatchObject({ status: 422, body: refused });
    const request = send(`${server.url}${path}`, {
      method: 'POST',
      headers: { 'x-api-key': server.apiKey, 'content-type': 'application/gzip', 'content-length': 1024 ** 2 },
    });
    request.flushHeaders();
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(422);
    expect(await json(answer)).toMatchObject(refused);
    request.destroy();
    const image = { source: { kind: 'image', image: 'example/guess', port: 8_000 } };
    expect(await server.request('POST', path, { body: image })).toMatchObject({ status: 202 });
  } finally {
    await server.close();
  }
});

test('a deploy where the operator hosts nothing', async () => {
  await created(off, 'nothing');
  const body = { source: { kind: 'url', urls: ['http://127.0.0.1:9'] } };
  expect(await off.request('POST', `/v1/environments/${off.orgName}/nothing/deploys`, { body })).toMatchObject({
    status: 501,
    body: { code: 'hosting_off' },
  });
});

test('a push, and a new secret, for an environment without a repository', async () => {
  const { server } = world;
  const { id } = await created(server, 'unlinked');
  expect(await server.request('POST', `/v1/hooks/git/${id}`, { body: {} })).toMatchObject({
    status: 401,
    body: { code: 'webhook_signature_invalid' },
  });
  expect(await server.request('POST', `/v1/environments/${server.orgName}/unlinked/git/secret`)).toMatchObject({
    status: 404,
    body: { code: 'git_link_not_found' },
  });
});
