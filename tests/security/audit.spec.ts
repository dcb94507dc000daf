import { serve } from '@palestra/environment-kit';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { AuditRetention } from '../../apps/api/src/jobs/audit-retention.ts';
import { echo } from '../../apps/environments/src/echo/echo.environment.ts';
import { createOrganisation, signIn } from '../support/organisation.ts';
import { sharedServer, startServer, type TestServer } from '../support/server.ts';

/** Finding M12 of the audit: an append-only log of who did what, when, from where. */

interface Event {
  id: string;
  at: string;
  action: string;
  refused: boolean;
  actor: { id: string; name: string } | null;
  key: { id: string; name: string } | null;
  target: { id: string | null; name: string | null } | null;
  details: Record<string, unknown>;
  address: string;
  user_agent: string;
}

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});

const list = async (query = '', to = server): Promise<Event[]> => (await to.request('GET', `/v1/audit?limit=500${query}`)).body.events;
const newest = async (action: string) => (await list(`&action=${action}`))[0];
const withCookie = (cookie: string) => (method: string, path: string, body?: unknown) =>
  server.request(method, path, {
    headers: { 'x-api-key': '', cookie, 'sec-fetch-site': 'same-origin' },
    ...(body !== undefined && { body }),
  });
const login = (body: object, headers = {}) => server.request('POST', '/v1/login', { headers: { 'x-api-key': '', ...headers }, body });
const cookieOf = ({ headers }: { headers: Headers }) => (headers.get('set-cookie') ?? '').split(';')[0]!;
const unique = (word: string) => `${word}-${crypto.randomUUID().slice(0, 8)}`;

describe('M12: recorded events', () => {
  test('keys, with actor, time and address', async () => {
    const before = Date.now();
    const { body: me } = await server.request('GET', '/v1/me');
    const headers = { 'user-agent': 'auditor/1' };
    const { body: key } = await server.request('POST', '/v1/keys', { headers, body: { name: 'watched', scopes: ['sessions'] } });
    await server.request('DELETE', `/v1/keys/${key.id}`, { headers });
    await server.request('DELETE', `/v1/keys/${key.id}`, { headers });
    const events = (await list('&action=key')).filter(({ target }) => target?.id === key.id);
    // The second revocation changed nothing.
    expect(events.map(({ action }) => action)).toEqual(['key.revoke', 'key.create']);
    expect(events[1]).toMatchObject({
      actor: me.user,
      key: { name: 'tests' },
      target: { name: 'watched' },
      details: { scopes: ['sessions'], expires_at: null },
      address: '127.0.0.1',
      user_agent: 'auditor/1',
      refused: false,
    });
    expect(Date.parse(events[1]!.at)).toBeGreaterThan(before - 5_000);
  });

  test('members, organisations, links, browser sessions, and actions of a browser that a link signed in', async () => {
    const name = unique('ada');
    const { body: ada } = await server.request('POST', '/v1/members', { body: { name } });
    const browser = withCookie(await signIn(ada.sign_in_url));
    const { body: hers } = await browser('POST', '/v1/keys', { name: 'her key' });
    expect(await newest('key.create')).toMatchObject({ actor: { id: ada.id, name }, key: null, target: { id: hers.id } });
    await server.request('PATCH', `/v1/members/${ada.id}`, { body: { role: 'owner' } });
    await server.request('PATCH', '/v1/organisation', { body: { retention_days: 30 } });
    await server.request('PATCH', '/v1/organisation', { body: { retention_days: null } });
    const { body: lab } = await server.request('POST', '/v1/organisations', { body: { name: unique('lab') } });
    const { body: browsers } = await server.request('GET', '/v1/browser-sessions');
    const session = browsers.browser_sessions.find(({ user }: { user: string }) => user === name);
    await server.request('DELETE', `/v1/browser-sessions/${session.id}`);
    await server.request('DELETE', `/v1/members/${ada.id}`);
    const since = (await list()).slice(0, 11).map(({ action, target }) => [action, target?.name ?? null]);
    expect(since).toEqual([
      ['member.remove', name],
      ['browser_session.end', name],
      // The link into the new organisation is an event of that one.
      ['organisation.create', lab.organisation.name],
      ['organisation.change', server.orgName],
      ['organisation.change', server.orgName],
      ['member.change', name],
      ['key.create', 'her key'],
      ['sign_in', null],
      ['sign_in_link.create', name],
      ['member.add', name],
      expect.anything(),
    ]);
    expect(await newest('member.remove')).toMatchObject({ details: { revoked_keys: 1 } });
    expect(await newest('organisation.change')).toMatchObject({ details: { retention_days: null } });
    const inside = withCookie(await signIn(lab.sign_in_url));
    const { body } = await inside('GET', '/v1/audit');
    expect(body.events.map(({ action }: Event) => action)).toEqual(['sign_in', 'sign_in_link.create', 'organisation.create']);
  });

  test('sign-ins, also those that fail, and sign-outs', async () => {
    const { body: key } = await server.request('POST', '/v1/keys', { body: { name: unique('door') } });
    const cookie = cookieOf(await login({ key: key.key }, { 'user-agent': 'browser/9' }));
    expect(await newest('sign_in')).toMatchObject({
      refused: false,
      key: { id: key.id },
      details: { method: 'key' },
      user_agent: 'browser/9',
    });
    await withCookie(cookie)('POST', '/v1/logout');
    expect(await newest('sign_out')).toMatchObject({ key: { id: key.id } });
    await server.request('DELETE', `/v1/keys/${key.id}`);
    expect(await login({ key: key.key })).toMatchObject({ status: 401 });
    expect(await newest('sign_in')).toMatchObject({
      refused: true,
      key: { id: key.id },
      details: { method: 'key', reason: 'key_revoked' },
    });
  });

  test('sign-ins with unknown credentials are shown to operators only', async () => {
    const own = await startServer();
    onTestFinished(() => own.close());
    const anonymous = { 'x-api-key': '', 'user-agent': 'burglar' };
    const guess = `or_${'x'.repeat(43)}`;
    await own.request('POST', '/v1/login', { headers: anonymous, body: { key: guess } });
    await fetch(`${own.url}/login`, {
      method: 'POST',
      body: new URLSearchParams({ token: guess }),
      redirect: 'manual',
      headers: anonymous,
    });
    const seen = (await list('', own)).filter(({ user_agent: agent }) => agent === 'burglar');
    expect(seen.map(({ refused, actor, details }) => [refused, actor, details['method']])).toEqual([
      [true, null, 'link'],
      [true, null, 'key'],
    ]);
    expect(JSON.stringify(seen)).not.toContain(guess);
    const { apiKey } = await createOrganisation(own.url, own.apiKey);
    const { body } = await own.request('GET', '/v1/audit?limit=500', { headers: { 'x-api-key': apiKey } });
    expect(JSON.stringify(body.events)).not.toContain('burglar');
    // The service's own: the first key, and the link that it prints at the start.
    expect((await list('', own)).filter(({ address }) => address === '').map(({ action }) => action)).toEqual([
      'sign_in_link.create',
      'key.create',
    ]);
  });

  test('environments, shares, exports and deletions', async () => {
    const upstream = await serve([echo]);
    onTestFinished(() => upstream.close());
    const name = unique('env');
    const path = `/v1/environments/${server.orgName}/${name}`;
    const source = { kind: 'remote', url: `${upstream.url}/?token=hunter2-hunter2` };
    const made = await server.request('POST', '/v1/environments', { body: { name } });
    expect(made.status).toBe(200);
    await server.request('PUT', `${path}/details`, { body: { new_description: 'x', new_is_private: false } });
    await server.request('POST', `${path}/versions`, { body: { source: { ...source, url: upstream.url } } });
    await server.request('POST', '/v1/exports/tasks', {
      body: { environments: [`${server.orgName}/${name}`], split: 'train', max_tasks: 1 },
    });
    await server.request('DELETE', path);
    expect((await list('&action=environment')).slice(0, 4)).toMatchObject([
      { action: 'environment.delete', target: { name: `${server.orgName}/${name}` } },
      { action: 'environment.deploy', details: { version: 1, source: 'remote', host: new URL(upstream.url).host } },
      { action: 'environment.change', details: { changed: ['new_description', 'new_is_private'], private: false } },
      { action: 'environment.create', target: { id: made.body.id }, details: { private: true } },
    ]);
    expect(await newest('export.create')).toMatchObject({ details: { of: 'tasks', split: 'train' } });
    const rolloutId = crypto.randomUUID();
    const rollout = { eventType: 'rollout', eventId: rolloutId, timestamp: Date.now(), runName: unique('run') };
    expect((await server.request('POST', '/v1/rollouts', { body: { events: [rollout] } })).status).toBe(200);
    const { body: share } = await server.request('POST', '/v1/shares', { body: { rollout: rolloutId } });
    await server.request('DELETE', `/v1/shares/${share.id}`);
    expect(await server.request('DELETE', `/v1/rollouts/${rolloutId}`)).toMatchObject({ status: 200 });
    await server.request('DELETE', `/v1/runs/${rollout.runName}`);
    expect((await list()).slice(0, 4)).toMatchObject([
      { action: 'run.delete', target: { id: rollout.runName } },
      { action: 'rollout.delete', target: { id: rolloutId } },
      { action: 'share.delete', target: { id: share.id } },
      { action: 'share.create', target: { id: share.id }, details: { kind: 'rollout', rollouts: [rolloutId] } },
    ]);
    expect(await server.request('DELETE', `/v1/rollouts/${rolloutId}`)).toMatchObject({ status: 404 });
    expect(await newest('rollout.delete')).toMatchObject({ target: { id: rolloutId } });
  });

  test('no secret: no keys, tokens, cookies or secrets in addresses', async () => {
    const secrets: string[] = [server.apiKey];
    const { body: key } = await server.request('POST', '/v1/keys', { body: { name: 'secretive', scopes: ['keys'] } });
    const cookie = cookieOf(await login({ key: key.key }));
    const { body: member } = await server.request('POST', '/v1/members', { body: { name: unique('secretive') } });
    await signIn(member.sign_in_url);
    const upstream = await serve([echo]);
    onTestFinished(() => upstream.close());
    const url = `${upstream.url}?password=hunter2-hunter2`;
    await server.request('POST', '/v1/environments', { body: { name: unique('env'), source: { kind: 'remote', url } } });
    secrets.push(key.key, key.key.slice(0, 20), cookie.split('=')[1]!, new URL(member.sign_in_url).searchParams.get('token')!, 'hunter2');
    const { rows } = await server.database.pool.query('SELECT row_to_json(a)::text AS text FROM audit_log a');
    for (const secret of secrets) expect(rows.filter(({ text }) => text.includes(secret))).toEqual([]);
  });
});

describe('M12: readers of the audit log', () => {
  test('owners with the scope "keys", of their own organisation', async () => {
    const other = await createOrganisation(server.url, server.apiKey);
    const headers = { 'x-api-key': other.apiKey };
    const foreign = (await server.request('GET', '/v1/audit?limit=500', { headers })).body.events as Event[];
    expect(foreign.every(({ target }) => target?.name !== server.orgName)).toBe(true);
    expect(JSON.stringify(foreign)).not.toContain(server.orgName);
    const { body: member } = await server.request('POST', '/v1/members', { body: { name: unique('bob') } });
    const browser = withCookie(await signIn(member.sign_in_url));
    const { body: narrow } = await server.request('POST', '/v1/keys', { body: { name: 'narrow' } });
    for (const path of ['/v1/audit', '/v1/audit/export']) {
      expect(await server.request('GET', path, { headers: { 'x-api-key': '' } })).toMatchObject({ status: 401 });
      expect(await browser('GET', path)).toMatchObject({ status: 403, body: { code: 'owner_required' } });
      expect(await server.request('GET', path, { headers: { 'x-api-key': narrow.key } })).toMatchObject({
        status: 403,
        body: { code: 'scope_missing' },
      });
    }
  });

  test('by pages, action, person and time', async () => {
    for (let count = 0; count < 5; count += 1) await server.request('POST', '/v1/keys', { body: { name: `page-${count}` } });
    const all = await list();
    const paged: Event[] = [];
    let cursor = '';
    do {
      const { body } = await server.request('GET', `/v1/audit?limit=3${cursor && `&cursor=${cursor}`}`);
      paged.push(...body.events);
      cursor = body.next_cursor ?? '';
    } while (cursor !== '');
    expect(paged.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    expect((await list('&action=key')).every(({ action }) => action.startsWith('key.'))).toBe(true);
    const { actor } = all.find(({ actor }) => actor?.name === 'me')!;
    expect(await list(`&actor=${actor!.id}`)).toEqual(await list('&actor=me'));
    const middle = all[Math.floor(all.length / 2)]!.at;
    expect(await list(`&since=${middle}`)).toEqual(all.filter(({ at }) => at >= middle));
    expect(await list(`&until=${middle}`)).toEqual(all.filter(({ at }) => at < middle));
    for (const [query, code] of [
      ['action=everything', 'invalid_body'],
      ['cursor=zzz', 'invalid_cursor'],
      ['since=yesterday', 'invalid_body'],
      ['limit=501', 'invalid_body'],
    ])
      expect((await server.request('GET', `/v1/audit?${query}`)).body.code).toBe(code);
  });

  test('as JSON lines, in several batches', async () => {
    await server.database.pool.query(
      `INSERT INTO audit_log (org_id, action, details, address, user_agent) SELECT id, 'key.create', '{}', 'test', number::text
       FROM organisations, generate_series(1, 1200) AS series (number) WHERE name = $1 ORDER BY series.number`,
      [server.orgName],
    );
    const { status, headers, body } = await server.request('GET', '/v1/audit/export?action=key.create');
    expect([status, headers.get('content-type')]).toEqual([200, 'application/x-ndjson; charset=utf-8']);
    const lines = String(body).trimEnd().split('\n');
    const events = lines.map((line) => JSON.parse(line) as Event);
    expect(events.filter(({ address }) => address === 'test').map(({ user_agent: n }) => Number(n))).toEqual(
      Array.from({ length: 1200 }, (_, at) => at + 1),
    );
    expect(await newest('audit.export')).toMatchObject({ actor: { name: 'me' }, details: { action: 'key.create' } });
  });
});

describe('M12: append-only', () => {
  test('the database refuses changes', async () => {
    const { pool } = server.database;
    const count = async () => (await pool.query('SELECT count(*)::int AS count FROM audit_log')).rows[0].count as number;
    const before = await count();
    for (const sql of [
      `UPDATE audit_log SET actor = 'somebody else'`,
      'DELETE FROM audit_log',
      'TRUNCATE audit_log',
      // Not even with the setting of the retention can the events of today go.
      `BEGIN; SELECT set_config('palestra.audit_log_expire', 'on', true); DELETE FROM audit_log; COMMIT`,
      `INSERT INTO audit_log (id, action, address, user_agent) SELECT id, 'x', '', '' FROM audit_log LIMIT 1 ON CONFLICT (id) DO UPDATE SET action = 'x'`,
    ]) {
      const client = await pool.connect();
      await expect(client.query(sql), sql).rejects.toMatchObject({ code: '42501' });
      await client.query('ROLLBACK');
      client.release();
    }
    await pool.query('SELECT audit_log_expire(0, 1000000)');
    expect(await count()).toBe(before);
  });

  test('only retention deletes events, and records it', async () => {
    const own = await startServer({ auditRetentionDays: 7, jobs: 'off' });
    onTestFinished(() => own.close());
    const { pool } = own.database;
    await pool.query(
      `INSERT INTO audit_log (at, action, address, user_agent) SELECT now() - days * interval '1 day', 'sign_in', 'old', '' FROM generate_series(1, 20) days`,
    );
    const retention = new AuditRetention({ handle: () => {} } as never, own.database, own.config);
    await retention.sweep(new AbortController().signal);
    const events = await list('', own);
    expect(events.filter(({ address }) => address === 'old')).toHaveLength(6);
    expect(events.find(({ action }) => action === 'audit.expire')).toMatchObject({ details: { events: 14, older_than_days: 7 } });
    await retention.sweep(new AbortController().signal);
    expect((await list('&action=audit.expire', own)).length).toBe(1);
  });
});
