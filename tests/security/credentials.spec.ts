import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createOrganisation, signIn } from '../support/organisation.ts';
import { sharedServer, type TestServer } from '../support/server.ts';

/** Findings C2, H6, M1, M2 and L1 of the audit: a credential never gains power, and what it opened ends with it. */

/** A stream or socket ends this soon after its credential, on every replica; with time for a busy machine. */
const ENDS_WITHIN = { timeout: 20_000, interval: 250 };

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});

interface Key {
  id: string;
  key: string;
}
const createKey = async (body: object): Promise<Key> => (await server.request('POST', '/v1/keys', { body: { name: 'k', ...body } })).body;
const revoke = ({ id }: Key) => server.request('DELETE', `/v1/keys/${id}`);
const withKey = (key: string) => (method: string, path: string, body?: unknown) =>
  server.request(method, path, { headers: { 'x-api-key': key }, ...(body !== undefined && { body }) });
const withCookie = (cookie: string) => (method: string, path: string, body?: unknown) =>
  server.request(method, path, {
    headers: { 'x-api-key': '', cookie, 'sec-fetch-site': 'same-origin' },
    ...(body !== undefined && { body }),
  });
/** The cookie of a browser into which somebody pasted a key. */
async function pasteKey(key: string): Promise<string> {
  const { headers } = await server.request('POST', '/v1/login', { headers: { 'x-api-key': '' }, body: { key } });
  return (headers.get('set-cookie') ?? '').split(';')[0]!;
}
const status = async (answer: Promise<{ status: number }>) => (await answer).status;

describe('C2: a browser session has the rights of its key', () => {
  test('no scope is gained by signing in', async () => {
    const { key } = await createKey({ scopes: ['sessions'] });
    const browser = withCookie(await pasteKey(key));
    expect(await browser('GET', '/v1/me')).toMatchObject({ status: 200 });
    expect(await browser('POST', '/v1/keys', { name: 'all', scopes: ['keys'] })).toMatchObject({
      status: 403,
      body: { code: 'scope_missing' },
    });
    expect(await browser('POST', '/v1/members', { name: 'accomplice', role: 'owner' })).toMatchObject({ status: 403 });
    expect(await browser('GET', '/v1/runs')).toMatchObject({ status: 403 });
  });

  test('no scope is gained by a sign-in link, for oneself, for an accomplice or into another organisation', async () => {
    const { key } = await createKey({ scopes: ['keys'] });
    const narrow = withKey(key);
    const { body: me } = await narrow('GET', '/v1/me');
    const { body: own } = await narrow('POST', `/v1/members/${me.user.id}/sign-in-link`);
    const { body: accomplice } = await narrow('POST', '/v1/members', { name: `eve-${Date.now()}`, role: 'owner' });
    const { body: lab } = await narrow('POST', '/v1/organisations', { name: `lab-${Date.now()}` });
    for (const link of [own, accomplice, lab].map(({ sign_in_url }) => sign_in_url)) {
      const browser = withCookie(await signIn(link));
      expect(await status(browser('GET', '/v1/keys'))).toBe(200);
      expect(await status(browser('GET', '/v1/runs'))).toBe(403);
      expect(await status(browser('POST', '/v1/keys', { name: 'wide', scopes: ['rollouts'] }))).toBe(403);
    }
  });

  test('a key creates no key that outlives it or opens more sessions', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const limited = withKey((await createKey({ scopes: ['keys', 'sessions'], expires_at, max_sessions: 2 })).key);
    const later = new Date(Date.now() + 7_200_000).toISOString();
    expect(await limited('POST', '/v1/keys', { name: 'x', scopes: ['sessions'], expires_at: later })).toMatchObject({ status: 403 });
    expect(await limited('POST', '/v1/keys', { name: 'x', scopes: ['sessions'], max_sessions: 3 })).toMatchObject({ status: 403 });
    expect(await limited('POST', '/v1/keys', { name: 'x', scopes: ['sessions'] })).toMatchObject({
      status: 200,
      body: { expires_at, max_sessions: 2 },
    });
  });
});

describe('H6: a browser session ends with its key', () => {
  test('when the key is revoked', async () => {
    const key = await createKey({ scopes: ['sessions', 'keys'] });
    const { body: me } = await withKey(key.key)('GET', '/v1/me');
    const { body: link } = await withKey(key.key)('POST', `/v1/members/${me.user.id}/sign-in-link`);
    const browsers = [await pasteKey(key.key), await signIn(link.sign_in_url)].map(withCookie);
    for (const browser of browsers) expect(await status(browser('GET', '/v1/me'))).toBe(200);
    await revoke(key);
    for (const browser of browsers) expect(await status(browser('GET', '/v1/me'))).toBe(401);
  });

  test('when the key expires', async () => {
    const key = await createKey({ expires_at: new Date(Date.now() + 3_600_000).toISOString() });
    const cookie = await pasteKey(key.key);
    await server.database.pool.query(`UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1`, [key.id]);
    await expect.poll(() => status(withKey(key.key)('GET', '/v1/me')), ENDS_WITHIN).toBe(401);
    expect(await withKey(key.key)('GET', '/v1/me')).toMatchObject({ body: { code: 'key_expired' } });
    expect(await status(withCookie(cookie)('GET', '/v1/me'))).toBe(401);
  });

  test('owners list browsers and sign them out; members see and end their own only', async () => {
    const { body: added } = await server.request('POST', '/v1/members', { body: { name: `ann-${Date.now()}` } });
    const ann = withCookie(await signIn(added.sign_in_url));
    await pasteKey(server.apiKey);
    const { body: all } = await server.request('GET', '/v1/browser-sessions');
    const hers = all.browser_sessions.find(({ user }: { user: string }) => user === added.name);
    const other = all.browser_sessions.find(({ user }: { user: string }) => user !== added.name);
    expect(hers).toMatchObject({ key: null, scopes: expect.arrayContaining(['keys']) });
    expect((await ann('GET', '/v1/browser-sessions')).body.browser_sessions).toEqual([hers]);
    expect(await ann('DELETE', `/v1/browser-sessions/${other.id}`)).toMatchObject({
      status: 404,
      body: { code: 'browser_session_not_found' },
    });
    expect(await status(server.request('DELETE', `/v1/browser-sessions/${hers.id}`))).toBe(200);
    expect(await status(ann('GET', '/v1/me'))).toBe(401);
  });
});

describe('M1: streams and sockets end with their credential', () => {
  test('a stream of a revoked key, and of a browser that signed out', async () => {
    const key = await createKey({});
    const other = await createKey({});
    const cookie = await pasteKey(other.key);
    const ended: string[] = [];
    const follow = async (name: string, headers: Record<string, string>) => {
      const answer = await fetch(`${server.url}/v1/stream`, { headers });
      expect(answer.status).toBe(200);
      void answer.text().then(
        () => ended.push(name),
        () => ended.push(name),
      );
    };
    await Promise.all([
      follow('key', { 'x-api-key': key.key }),
      follow('cookie', { cookie }),
      follow('kept', { 'x-api-key': server.apiKey }),
    ]);
    await revoke(key);
    await withCookie(cookie)('POST', '/v1/logout');
    await expect.poll(() => ended.toSorted(), ENDS_WITHIN).toEqual(['cookie', 'key']);
  });

  test('a socket of a revoked key', async () => {
    const key = await createKey({});
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/openenv/palestra/echo_env/ws`, { headers: { 'x-api-key': key.key } });
    await once(socket, 'open');
    const closed = once(socket, 'close');
    await revoke(key);
    expect((await closed)[0]).toBe(1008);
  });
});

describe('M2: members manage their own keys', () => {
  test('a member neither sees nor revokes the keys of others', async () => {
    const { body: added } = await server.request('POST', '/v1/members', { body: { name: `bob-${Date.now()}` } });
    const bob = withCookie(await signIn(added.sign_in_url));
    const owners = await createKey({ name: 'owners' });
    const { body: his } = await bob('POST', '/v1/keys', { name: 'his' });
    expect((await bob('GET', '/v1/keys')).body.keys.map(({ id }: Key) => id)).toEqual([his.id]);
    expect(await bob('DELETE', `/v1/keys/${owners.id}`)).toMatchObject({ status: 404, body: { code: 'key_not_found' } });
    const { body: all } = await server.request('GET', '/v1/keys');
    expect(all.keys.find(({ id }: Key) => id === his.id)).toMatchObject({ user: added.name });
    expect(await status(server.request('DELETE', `/v1/keys/${his.id}`))).toBe(200);
  });
});

describe('L1: a sign-in link signs in only after a confirmation from our own page', () => {
  const linkOf = async () => {
    const { body } = await server.request('POST', '/v1/members', { body: { name: `link-${Math.random().toString(36).slice(2)}` } });
    return body.sign_in_url as string;
  };

  test('opening it, as a preview does, does not use it', async () => {
    const link = await linkOf();
    for (let previews = 0; previews < 3; previews += 1) {
      const answer = await fetch(link, { redirect: 'manual' });
      expect(answer.headers.get('set-cookie')).toBeNull();
      expect(await answer.text()).toContain('<form method="post"');
    }
    expect(await signIn(link)).toMatch(/^palestra_session=./);
  });

  test.each([
    ['/login', (token: string) => ({ body: new URLSearchParams({ token }) })],
    ['/v1/login', () => ({ body: JSON.stringify({ key: server.apiKey }), headers: { 'content-type': 'application/json' } })],
  ])('a page of another site cannot post to %s', async (path, form) => {
    const link = await linkOf();
    const token = new URL(link).searchParams.get('token')!;
    const foreignHeaders: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ];
    for (const foreign of foreignHeaders) {
      const { body, headers } = form(token) as { body: string; headers?: Record<string, string> };
      const answer = await fetch(server.url + path, { method: 'POST', body, redirect: 'manual', headers: { ...headers, ...foreign } });
      expect(answer.status).toBe(403);
      expect(answer.headers.get('set-cookie')).toBeNull();
    }
  });
});

interface Waiting {
  /** By the cookie, and by a key, of an owner who is being removed. */
  browser: ReturnType<typeof withCookie>;
  key: ReturnType<typeof withKey>;
  /** Ids of a member, and of another owner. */
  member: string;
  other: string;
}

test.each<[name: string, statuses: number[], send: (waiting: Waiting) => (() => Promise<{ status: number }>)[]]>([
  [
    'keys',
    [401, 401],
    ({ browser, key }) => [
      () => browser('POST', '/v1/keys', { name: 'later', scopes: ['keys'] }),
      () => key('POST', '/v1/keys', { name: 'later', scopes: ['keys'] }),
    ],
  ],
  [
    'members',
    [403, 403, 403],
    ({ browser, member, other }) => [
      () => browser('POST', '/v1/members', { name: `m-${randomUUID()}`, role: 'owner' }),
      () => browser('PATCH', `/v1/members/${member}`, { role: 'owner' }),
      () => browser('DELETE', `/v1/members/${other}`),
    ],
  ],
  ['the organisation', [403], ({ browser }) => [() => browser('PATCH', '/v1/organisation', { retention_days: 1 })]],
])('%s: requests that wait while their owner is removed do nothing', async (_of, statuses, requests) => {
  const { name, apiKey } = await createOrganisation(server.url, server.apiKey);
  const owner = withKey(apiKey);
  const add = async (role: string) => (await owner('POST', '/v1/members', { name: `m-${randomUUID()}`, role })).body;
  const [leaving, member, other] = [await add('owner'), await add('member'), await add('owner')];
  const browser = withCookie(await signIn(leaving.sign_in_url));
  const key = withKey((await browser('POST', '/v1/keys', { name: 'k', scopes: ['keys'] })).body.key);
  const { pool } = server.database;
  const countWaiting = async () => {
    const { rows } = await pool.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'SELECT id FROM organisations%'`,
    );
    return rows.length;
  };
  const answers: Promise<{ status: number }>[] = [];
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT FROM organisations WHERE name = $1 FOR UPDATE', [name]);
    for (const send of [
      () => owner('DELETE', `/v1/members/${leaving.id}`),
      ...requests({ browser, key, member: member.id, other: other.id }),
    ]) {
      answers.push(send());
      await expect.poll(countWaiting).toBe(answers.length);
    }
    await client.query('COMMIT');
  } finally {
    client.release();
  }
  expect(await Promise.all(answers.map(status))).toEqual([200, ...statuses]);
  const { members } = (await owner('GET', '/v1/members')).body;
  expect(members.slice(1).map(({ id, role, keys }: any) => [id, role, keys])).toEqual([
    [member.id, 'member', 0],
    [other.id, 'owner', 0],
  ]);
});

test('a sign-in link that is stored just after its member was removed opens nothing', async () => {
  const { apiKey } = await createOrganisation(server.url, server.apiKey);
  const owner = withKey(apiKey);
  const { body: member } = await owner('POST', '/v1/members', { name: `m-${randomUUID()}`, role: 'member' });
  const { pool } = server.database;
  // As by a request that found the member before the removal.
  const columns = 'hash, org_id, user_id, key_id, scopes, can_switch, expires_at';
  const { rows } = await pool.query(`SELECT ${columns} FROM sign_in_tokens WHERE user_id = $1`, [member.id]);
  expect((await owner('DELETE', `/v1/members/${member.id}`)).status).toBe(200);
  await pool.query(`INSERT INTO sign_in_tokens (${columns}) VALUES ($1, $2, $3, $4, $5, $6, $7)`, Object.values(rows[0]));
  const browser = withCookie(await signIn(member.sign_in_url));
  for (const path of ['/v1/me', '/v1/runs', '/v1/members']) expect([path, (await browser('GET', path)).status]).toEqual([path, 401]);
});
