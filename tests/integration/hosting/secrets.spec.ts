import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EnvironmentSecrets, maskOf } from '../../../apps/api/src/environments/hosting/secrets/environment-secrets.ts';
import { SecretKeys } from '../../../apps/api/src/platform/secret-keys.ts';
import { type TestServer, startServer } from '../../support/server.ts';
import { createOrganisation } from '../../support/organisation.ts';

const KEY = 'k'.repeat(40);
const VALUE = 'sk-very-secret-value';
let server: TestServer;
let base: string;
let environmentId: string;

beforeAll(async () => {
  server = await startServer({ secretKey: KEY });
  const { body } = await server.request('POST', '/v1/environments', { body: { name: 'guarded', description: '' } });
  base = `/v1/environments/${body.owner}/guarded/secrets`;
  environmentId = body.id;
});
afterAll(() => server.close());

/** As a worker opens them. */
const opened = () =>
  new EnvironmentSecrets(server.serviceDatabase, { ...server.config, secretKey: KEY }, new SecretKeys('another'.repeat(6))).open(
    environmentId,
  );

describe('secrets of an environment', () => {
  test('are set, replaced, listed by name and deleted, and never returned', async () => {
    expect((await server.request('PUT', `${base}/API_KEY`, { body: { value: VALUE } })).status).toBe(200);
    const { body } = await server.request('PUT', `${base}/OTHER`, { body: { value: 'x' } });
    expect(body.secrets.map(({ name }: { name: string }) => name)).toEqual(['API_KEY', 'OTHER']);
    await server.request('PUT', `${base}/OTHER`, { body: { value: 'y' } });
    expect(await opened()).toEqual({ API_KEY: VALUE, OTHER: 'y' });
    const listed = await server.request('GET', base);
    expect(JSON.stringify(listed.body)).not.toContain(VALUE);
    expect((await server.request('DELETE', `${base}/OTHER`)).status).toBe(200);
    expect((await server.request('DELETE', `${base}/OTHER`)).status).toBe(200);
    expect(await opened()).toEqual({ API_KEY: VALUE });
  });

  test('are stored sealed, for this environment', async () => {
    const { rows } = await server.database.pool.query(`SELECT encode(sealed, 'escape') AS text FROM environment_secrets`);
    expect(JSON.stringify(rows)).not.toContain(VALUE);
    const other = (await server.request('POST', '/v1/environments', { body: { name: 'other', description: '' } })).body;
    await server.database.pool.query('INSERT INTO environment_secrets SELECT $1, name, org_id, sealed FROM environment_secrets', [
      other.id,
    ]);
    const stolen = new EnvironmentSecrets(server.serviceDatabase, { ...server.config, secretKey: KEY }, new SecretKeys(KEY)).open(other.id);
    await expect(stolen).rejects.toMatchObject({ code: 'secrets_invalid' });
    await server.request('DELETE', `/v1/environments/${other.owner}/other`);
  });

  test('the credentials of the repository are not for instances', async () => {
    await server.request('PUT', `${base}/GIT_TOKEN`, { body: { value: 'ghp_1234567890' } });
    expect(await opened()).toEqual({ API_KEY: VALUE });
    await server.request('DELETE', `${base}/GIT_TOKEN`);
  });

  test.each(['.hidden', '1st', 'a%2Fb', 'x'.repeat(129)])('refuses the name %s', async (name) => {
    expect(await server.request('PUT', `${base}/${name}`, { body: { value: 'x' } })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    });
  });

  test('has a limit', async () => {
    await server.database.pool.query(
      `INSERT INTO environment_secrets (environment_id, name, org_id, sealed)
       SELECT environment_id, 'N' || n, org_id, sealed FROM environment_secrets, generate_series(1, 99) AS n`,
    );
    expect((await server.request('PUT', `${base}/ONE_MORE`, { body: { value: 'x' } })).body).toMatchObject({ code: 'limit_reached' });
    expect((await server.request('PUT', `${base}/API_KEY`, { body: { value: VALUE } })).status).toBe(200);
    await server.database.pool.query(`DELETE FROM environment_secrets WHERE name LIKE 'N%'`);
  });

  test('another organisation finds none', async () => {
    const { apiKey } = await createOrganisation(server.url, server.apiKey);
    for (const [method, path] of [
      ['GET', base],
      ['PUT', `${base}/API_KEY`],
      ['DELETE', `${base}/API_KEY`],
    ] as const) {
      const body = method === 'PUT' ? { body: { value: 'taken over' } } : {};
      const answer = await server.request(method, path, { ...body, headers: { 'x-api-key': apiKey } });
      expect(answer).toMatchObject({ status: 404, body: { code: 'environment_not_found' } });
    }
    expect(await opened()).toEqual({ API_KEY: VALUE });
  });

  test('changes are in the audit log, without the value', async () => {
    const { body } = await server.request('GET', '/v1/audit?limit=500');
    const entry = body.events.find(({ action }: { action: string }) => action === 'environment.secret_set');
    expect(entry).toMatchObject({ details: { secret: 'API_KEY' } });
    expect(JSON.stringify(body)).not.toContain(VALUE);
  });
});

test('a rotation of the key seals them again', async () => {
  const own = await startServer();
  try {
    const { body } = await own.request('POST', '/v1/environments', { body: { name: 'guarded', description: '' } });
    await own.request('PUT', `/v1/environments/${body.owner}/guarded/secrets/API_KEY`, { body: { value: VALUE } });
    const rotated = await own.request('POST', '/v1/keys/rotate-secret', { body: { drop_previous: true } });
    expect(rotated).toMatchObject({ status: 200, body: { resealed: 1, unreadable: 0 } });
    const secrets = new EnvironmentSecrets(own.serviceDatabase, own.config, new SecretKeys(KEY));
    expect(await secrets.open(body.id)).toEqual({ API_KEY: VALUE });
  } finally {
    await own.close();
  }
});

test('a log shows no value, also none of several lines', () => {
  const mask = maskOf({ TOKEN: VALUE, PEM: '-----BEGIN KEY-----\nabcdefghij\nklmnopqrst\n-----END KEY-----\n', SHORT: 'abc' });
  expect(mask.hide(`token=${VALUE};`)).toBe('token=[secret:TOKEN];');
  expect(mask.hide('klmnopqrst')).toBe('[secret:PEM.3]');
  expect(mask.hide('abc')).toBe('abc');
});
