import { systemClock } from '@palestra/kit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuditLog } from '../../../apps/api/src/accounts/audit/audit-log.service.ts';
import { KeyService } from '../../../apps/api/src/accounts/key.service.ts';
import { signIn } from '../../support/organisation.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** The printed sign-in link works once for each service: this file needs a service that no other file uses. */
let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

const as = (key: string) => ({ headers: { 'x-api-key': key } });

describe('API keys', () => {
  it('replicas that start together store the key of the operator once', async () => {
    const { body: me } = await server.request('GET', '/v1/me');
    const keys = new KeyService(server.database, null as never, null as never, server.config, systemClock, new AuditLog(server.database));
    const owner = { orgId: me.org.id, userId: me.user.id, name: 'of the operator', scopes: ['sessions'] };
    const stored = await Promise.all(Array.from({ length: 8 }, () => keys.store(owner, 'or_key_of_the_operator_Kq7Vw2Xz9')));
    expect(new Set(stored.map(({ id }) => id)).size).toBe(1);
    const { events } = (await server.request('GET', '/v1/audit?action=key.create')).body;
    expect(
      events.filter(({ target }: { target: { name: string } | string }) => JSON.stringify(target).includes('of the operator')),
    ).toHaveLength(1);
  });

  it('refuses a missing, an unknown and a revoked key, each with its code', async () => {
    expect(await server.request('GET', '/v1/keys', as(''))).toMatchObject({ status: 401, body: { code: 'unauthorized', statusCode: 401 } });
    expect(await server.request('GET', '/v1/keys', as('or_wrong'))).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    const { body: created } = await server.request('POST', '/v1/keys', { body: { name: 'short-lived' } });
    expect(await server.request('GET', '/v1/me', as(created.key))).toMatchObject({ status: 200 });
    expect(await server.request('DELETE', `/v1/keys/${created.id}`)).toMatchObject({ status: 200, body: { id: created.id } });
    expect(await server.request('GET', '/v1/me', as(created.key))).toMatchObject({ status: 401, body: { code: 'key_revoked' } });
  });

  it('refuses a body of the wrong shape and names the field', async () => {
    const answer = await server.request('POST', '/v1/keys', { body: { name: '' } });
    expect(answer.status).toBe(422);
    expect(answer.body).toMatchObject({ code: 'invalid_body', detail: [{ loc: ['body', 'name'] }] });
    expect(await server.request('POST', '/v1/keys', { body: '{"name":' })).toMatchObject({
      status: 422,
      body: { code: 'invalid_json', statusCode: 422, detail: expect.stringContaining('JSON'), message: expect.any(String) },
    });
  });

  it('refuses to revoke a missing key', async () => {
    expect(await server.request('DELETE', '/v1/keys/nothing')).toMatchObject({ status: 404, body: { code: 'key_not_found' } });
  });

  it('limits a key to its scopes', async () => {
    const { body: created } = await server.request('POST', '/v1/keys', { body: { name: 'narrow', scopes: ['rollouts'] } });
    expect(await server.request('GET', '/v1/keys', as(created.key))).toMatchObject({ status: 403, body: { code: 'scope_missing' } });
  });

  it('stores only a hash and shows the key once', async () => {
    const { body: created } = await server.request('POST', '/v1/keys', { body: { name: 'hashed' } });
    expect(created.key).toMatch(/^or_[\w-]{43}$/);
    const { body: list } = await server.request('GET', '/v1/keys');
    expect(JSON.stringify(list)).not.toContain(created.key);
    const { rows } = await server.database.pool.query('SELECT api_keys::text AS row FROM api_keys');
    expect(rows.some(({ row }) => row.includes(created.key))).toBe(false);
  });

  it('answers whoami for both types, and 401 for a wrong key', async () => {
    for (const type of ['user', 'org']) {
      expect(await server.request('GET', `/v1/namespace/current?type=${type}`)).toMatchObject({
        status: 200,
        body: { name: server.orgName, type },
      });
      expect(await server.request('GET', `/v1/namespace/current?type=${type}`, as('or_wrong'))).toMatchObject({ status: 401 });
    }
  });
});

describe('browser sign-in', () => {
  it('sets a cookie for the printed link, once', async () => {
    const cookie = await signIn(server.signInUrl);
    expect(cookie).toMatch(/^palestra_session=./);
    expect(await signIn(server.signInUrl)).toBe('');

    const headers = { 'x-api-key': '', cookie };
    expect(await server.request('GET', '/v1/me', { headers })).toMatchObject({ status: 200, body: { org: { name: server.orgName } } });
    expect(await server.request('POST', '/v1/keys', { headers, body: { name: 'x' } })).toMatchObject({
      status: 403,
      body: { code: 'forbidden' },
    });
    const same = { ...headers, 'sec-fetch-site': 'same-origin' };
    expect(await server.request('POST', '/v1/keys', { headers: same, body: { name: 'x' } })).toMatchObject({ status: 200 });
    await server.request('POST', '/v1/logout', { headers: same });
    expect(await server.request('GET', '/v1/me', { headers })).toMatchObject({ status: 401 });
  });

  it('signs in with a key', async () => {
    expect(await server.request('POST', '/v1/login', { headers: { 'x-api-key': '' }, body: { key: 'or_wrong' } })).toMatchObject({
      status: 401,
    });
    const answer = await server.request('POST', '/v1/login', { headers: { 'x-api-key': '' }, body: { key: server.apiKey } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('set-cookie')).toContain('palestra_session=');
  });
});

describe('pages', () => {
  const page = (path: string) => fetch(server.url + path, { headers: { accept: 'text/html' }, redirect: 'manual' });

  it('cannot be used by scripts of another origin, and never shadow the session API', async () => {
    const answer = await page('/local/runs/some%2Frun');
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(answer.headers.get('content-type')).toContain('text/html');
    expect((await page('/doesnotexist/tools')).headers.get('content-type')).toContain('application/json');
  });

  it('redirect from the addresses that clients print', async () => {
    expect((await page('/acme/math')).headers.get('location')).toBe('/environments/acme/math');
    expect((await page('/settings/api-keys')).headers.get('location')).toBe('/keys');
    for (const path of ['', '/', '/web', '/web/']) {
      expect((await page(`/openenv/acme/math${path}`)).headers.get('location'), path).toBe('/environments/acme/math/play');
      expect(await server.request('GET', `/openenv/acme/math${path}`), path).toMatchObject({
        status: 404,
        body: { code: 'route_not_found' },
      });
    }
    expect(await server.request('GET', '/acme/math')).toMatchObject({ status: 404, body: { code: 'route_not_found' } });
    expect(await server.request('POST', '/acme/math')).toMatchObject({ status: 404, body: { code: 'route_not_found' } });
  });
});

describe('routing', () => {
  it('distinguishes 404 from 405, and collapses leading slashes only', async () => {
    expect(await server.request('GET', '/v1/nope')).toMatchObject({ status: 404, body: { code: 'route_not_found', detail: 'Not Found' } });
    expect(await server.request('PUT', '/v1/me')).toMatchObject({ status: 405, body: { code: 'method_not_allowed' } });
    expect(await server.request('GET', '//v1/me')).toMatchObject({ status: 200 });
    expect(await server.request('GET', '/v1//me')).toMatchObject({ status: 404 });
  });
});
