import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UrlSigner } from '@palestra/blobs';
import { createOrganisation } from '../support/organisation.ts';
import { createDatabase, startServer, type TestServer } from '../support/server.ts';
import { callTool, openSession, startObserved, type World } from '../integration/observed.world.ts';

/** Finding L6 of the audit: what is sealed opens in its own row only, and its key can be replaced. */

let database: Awaited<ReturnType<typeof createDatabase>>;
let dataDir: string;
let server: TestServer;
let world: World;
const start = () => startServer({ databaseUrl: database.url, dataDir });
const restart = async () => {
  await server.close();
  server = await start();
};

beforeAll(async () => {
  database = await createDatabase();
  dataDir = await mkdtemp(path.join(tmpdir(), 'palestra-secrets-'));
  await chmod(dataDir, 0o755);
  server = await start();
  world = await startObserved(server);
});
afterAll(async () => {
  await server?.close();
  await world?.upstream.close();
  await database?.drop();
  await rm(dataDir, { recursive: true, force: true });
});

const xSecrets = (TOKEN: string) => ({ 'x-secrets': Buffer.from(JSON.stringify({ TOKEN: { value: TOKEN } })).toString('base64') });
const reserve = async (token: string): Promise<string> => {
  const headers = { 'x-deployment': world.environment, ...xSecrets(token) };
  const { body } = await server.request('POST', '/create_session', { body: {}, headers });
  return /data: (\S+)/.exec(body as string)![1]!;
};
const create = (sid: string) =>
  server.request('POST', '/create', {
    body: { split: 'train', index: 0 },
    headers: { 'x-deployment': world.environment, 'x-session-id': sid },
  });
const sealedOf = async (sid: string): Promise<Buffer> =>
  (await server.database.pool.query<{ secrets: Buffer }>('SELECT secrets FROM sessions WHERE sid = $1', [sid])).rows[0]!.secrets;
const hears = async (sid: string, text: string) => (await callTool(server, sid, 'hear', { text })).text;
const rotate = (body = {}, headers = {}) => server.request('POST', '/v1/keys/rotate-secret', { body, headers });

test('secrets copied from another session in the database cannot be decrypted', async () => {
  const [mine, theirs] = [await reserve('attackers-own-token'), await reserve('secret-of-the-victim')];
  await server.database.pool.query('UPDATE sessions SET secrets = $2 WHERE sid = $1', [mine, await sealedOf(theirs)]);
  await restart();
  expect(await create(mine)).toMatchObject({ status: 400, body: { code: 'secrets_invalid' } });
  expect((await create(theirs)).status).toBe(200);
  expect(await hears(theirs, 'secret-of-the-victim')).toContain('that is it');
});

test('a new key encrypts everything; running sessions and signed URLs continue, also after a restart', async () => {
  const sid = await openSession(server, world.environment, xSecrets('a-token-to-keep'));
  const waiting = await reserve('a-token-that-waits');
  const before = await Promise.all([sid, waiting].map(sealedOf));
  const file = path.join(dataDir, 'server-secret');
  const [oldKey] = (await readFile(file, 'utf8')).split('\n');
  const { body: uploads } = await server.request('POST', '/v1/files/upload-urls', {
    body: { environmentId: (await server.request('GET', `/v1/environments/${world.environment}`)).body.id, files: [{ fileName: 'a' }] },
  });
  const url = /"(http[^"]+\/blobs\/[^"]+)"/.exec(JSON.stringify(uploads))![1]!;
  const put = () => fetch(url, { method: 'PUT', body: 'x', headers: { 'content-type': 'application/octet-stream' } });

  expect(await rotate()).toMatchObject({ status: 200, body: { key_replaced: true, previous_keys: 1 } });
  const keys = (await readFile(file, 'utf8')).trim().split('\n');
  expect(keys).toHaveLength(2);
  expect(keys[0]).not.toBe(oldKey);
  expect(keys[1]).toBe(oldKey);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const after = await Promise.all([sid, waiting].map(sealedOf));
  for (const [index, sealed] of after.entries()) {
    expect(sealed.subarray(0, 9)).not.toEqual(before[index]!.subarray(0, 9));
    expect(sealed.subarray(0, 9)).toEqual(after[0]!.subarray(0, 9));
  }
  expect(await put().then(({ status }) => status)).not.toBe(403);
  expect(await hears(sid, 'a-token-to-keep')).toContain('that is it');
  // What this process knows of it is written: sealed with the new key.
  expect((await create(waiting)).status).toBe(200);
  expect((await sealedOf(waiting)).subarray(0, 9)).toEqual(after[0]!.subarray(0, 9));

  expect(await rotate({ drop_previous: true })).toMatchObject({ status: 200, body: { previous_keys: 0 } });
  expect((await put()).status).toBe(403);
  expect((await readFile(file, 'utf8')).trim().split('\n')).toHaveLength(1);
  await restart();
  expect(await hears(sid, 'a-token-to-keep')).toContain('that is it');
  expect(await hears(waiting, 'a-token-that-waits')).toContain('that is it');
});

test('a dropped key signs no URL', async () => {
  const { createHmac } = await import('node:crypto');
  const [leaked] = (await readFile(path.join(dataDir, 'server-secret'), 'utf8')).split('\n');
  const forge = () => {
    const key = createHmac('sha256', leaked!).update('palestra signed urls').digest();
    return new UrlSigner(key, () => server.url, Date.now).sign({ method: 'GET', key: 'orgs/any' }, 60);
  };
  expect((await fetch(forge())).status).toBe(404);
  await rotate({ drop_previous: true });
  expect((await fetch(forge())).status).toBe(403);
});

test("the operator's command rotates the key", async () => {
  const cli = path.resolve(import.meta.dirname, '../../apps/cli/dist/main.js');
  const env = { ...process.env, PALESTRA_URL: server.url, PALESTRA_API_KEY: server.apiKey };
  const { stdout } = await promisify(execFile)(process.execPath, [cli, 'keys', 'rotate-secret', '--drop-previous'], { env });
  expect(stdout).toMatch(/^Created a new key; encrypted the secrets of \d+ sessions with it\n/);
});

test('configured keys: the next one is added, then put first, then alone, and no session loses its secrets', async () => {
  const [first, second] = ['first key of the configuration, long', 'second key of the configuration, long'];
  const restartWith = async (secretKey: string, previousSecretKeys: string[]) => {
    await server.close();
    server = await startServer({ databaseUrl: database.url, dataDir, secretKey, previousSecretKeys });
  };
  await restartWith(first, []);
  const sid = await openSession(server, world.environment, xSecrets('a-token-of-a-replica'));
  await restartWith(second, [first]);
  expect(await hears(sid, 'a-token-of-a-replica')).toContain('that is it');
  expect(await rotate({ drop_previous: true })).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  const { status, body } = await rotate();
  expect(status).toBe(200);
  expect(body).toMatchObject({ key_replaced: false, previous_keys: 1 });
  await restartWith(second, []);
  expect(await hears(sid, 'a-token-of-a-replica')).toContain('that is it');
  await restart();
});

test('the rotation is for owners of the organisation that runs the service', async () => {
  const tenant = await createOrganisation(server.url, server.apiKey);
  expect(await rotate({}, { 'x-api-key': tenant.apiKey })).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  expect(await rotate({}, { 'x-api-key': '' })).toMatchObject({ status: 401 });
  const { body: narrow } = await server.request('POST', '/v1/keys', { body: { name: 'narrow', scopes: ['sessions'] } });
  expect(await rotate({}, { 'x-api-key': narrow.key })).toMatchObject({ status: 403, body: { code: 'scope_missing' } });
});
