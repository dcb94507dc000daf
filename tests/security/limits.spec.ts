import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { readLimits } from '../../apps/api/src/platform/limits.ts';
import { createOrganisation, signIn, type TestOrganisation } from '../support/organisation.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { seeded, upload } from '../integration/runs/run-reads.world.ts';

/** Finding M5 of the audit: one key or organisation takes no more than the operator allows, and its neighbours have what they may have. */

const LOW = {
  PALESTRA_MAX_SESSIONS_PER_KEY: 3,
  PALESTRA_MAX_SESSIONS_PER_ORG: 5,
  PALESTRA_MAX_SOCKETS_PER_KEY: 4,
  PALESTRA_MAX_SOCKETS_PER_ORG: 6,
  PALESTRA_MAX_STREAMS_PER_KEY: 4,
  PALESTRA_MAX_STREAMS_PER_ORG: 6,
  PALESTRA_MAX_UPLOADS_PER_KEY: 1,
  PALESTRA_MAX_UPLOADS_PER_ORG: 2,
  PALESTRA_MAX_KEYS_PER_ORG: 8,
  PALESTRA_MAX_MEMBERS_PER_ORG: 4,
  PALESTRA_MAX_ORGANISATIONS_PER_ORG: 5,
};

let server: TestServer;
let attacker: TestOrganisation;
let neighbour: TestOrganisation;
beforeAll(async () => {
  server = await startServer({ bundledEnvironments: true, limits: readLimits(LOW), queue: { limit: 1_000, patienceMs: 5_000 } });
  attacker = await createOrganisation(server.url, server.apiKey);
  neighbour = await createOrganisation(server.url, server.apiKey);
});
afterAll(() => server?.close());

const as = (key: string, method: string, path: string, body?: unknown, headers = {}) =>
  server.request(method, path, { headers: { 'x-api-key': key, ...headers }, ...(body !== undefined && { body }) });
const newKey = async (key: string): Promise<string> =>
  (await as(key, 'POST', '/v1/keys', { name: 'k', scopes: ['sessions', 'rollouts', 'keys'] })).body.key;
const refused = { status: 429, body: { code: 'limit_reached', detail: expect.stringMatching(/PALESTRA_MAX_/) } };

describe('M5: event streams', () => {
  const open = async (key: string) => {
    const aborter = new AbortController();
    const answer = await fetch(`${server.url}/v1/stream`, { headers: { 'x-api-key': key }, signal: aborter.signal });
    return { status: answer.status, retry: answer.headers.get('retry-after'), close: () => aborter.abort() };
  };

  test('a key and an organisation have limits; another organisation has its own', async () => {
    const second = await newKey(attacker.apiKey);
    const first = await Promise.all(Array.from({ length: 20 }, () => open(attacker.apiKey)));
    expect(first.filter(({ status }) => status === 200)).toHaveLength(4);
    expect(first.find(({ status }) => status === 429)!.retry).toBe('5');
    const more = await Promise.all(Array.from({ length: 20 }, () => open(second)));
    expect(more.filter(({ status }) => status === 200)).toHaveLength(2);
    const others = await open(neighbour.apiKey);
    expect(others.status).toBe(200);
    for (const { close } of [...first, ...more, others]) close();
    await expect.poll(async () => (await open(attacker.apiKey)).status).toBe(200);
  });
});

test('M5: a client that leaves before its event stream begins holds no place', async () => {
  await upload(server, 'left', seeded('left', { steps: 1, tasks: 1, n: 1 }));
  const open = (aborter: AbortController) =>
    fetch(`${server.url}/v1/stream?run=left`, { headers: { 'x-api-key': server.apiKey }, signal: aborter.signal });
  const { pool } = server.database;
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('LOCK TABLE runs IN ACCESS EXCLUSIVE MODE');
    const leaving = Array.from({ length: LOW.PALESTRA_MAX_STREAMS_PER_KEY }, () => new AbortController());
    const answers = leaving.map((aborter) => open(aborter).catch(() => null));
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'SELECT seq FROM runs%name_hash%'`;
    await expect.poll(async () => (await pool.query(waiting)).rowCount).toBe(leaving.length);
    for (const aborter of leaving) aborter.abort();
    await Promise.all(answers);
    // The service hears of the closed connections.
    await setTimeout(500);
    await client.query('COMMIT');
  } finally {
    client.release();
  }
  const statuses = async () => {
    const staying = Array.from({ length: LOW.PALESTRA_MAX_STREAMS_PER_KEY }, () => new AbortController());
    const answers = await Promise.all(staying.map(open));
    for (const aborter of staying) aborter.abort();
    return answers.map(({ status }) => status);
  };
  await expect.poll(statuses, { interval: 500 }).toEqual([200, 200, 200, 200]);
});

describe('M5: sockets', () => {
  const url = () => `${server.url.replace('http', 'ws')}/v1/text-sessions/ws`;
  const open = async (key: string): Promise<WebSocket | number> => {
    const socket = new WebSocket(url(), { headers: { 'x-api-key': key } });
    return new Promise((resolve) => {
      socket.on('error', () => {});
      socket.once('open', () => resolve(socket));
      socket.once('unexpected-response', (_request, answer) => resolve(answer.statusCode!));
    });
  };

  test('a key has a limit, and a closed socket makes room', async () => {
    const all = await Promise.all(Array.from({ length: 30 }, () => open(attacker.apiKey)));
    const sockets = all.filter((one) => typeof one !== 'number');
    expect(sockets).toHaveLength(4);
    expect(new Set(all.filter((one) => typeof one === 'number'))).toEqual(new Set([429]));
    expect(typeof (await open(neighbour.apiKey))).toBe('object');
    sockets[0]!.close();
    await once(sockets[0]!, 'close');
    await expect.poll(async () => typeof (await open(attacker.apiKey))).toBe('object');
    for (const socket of sockets) socket.terminate();
  });

  test('an invalid upgrade does not count', async () => {
    const key = await newKey(neighbour.apiKey);
    const { hostname, port } = new URL(server.url);
    for (let i = 0; i < 10; i += 1) {
      const socket = connect(Number(port), hostname);
      // Without Sec-WebSocket-Key it is no handshake.
      socket.write(
        `GET /v1/text-sessions/ws HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      );
      socket.resume();
      await once(socket, 'close');
    }
    await expect.poll(async () => typeof (await open(key))).toBe('object');
  });
});

describe('M5: sessions', () => {
  const reserve = (key: string) => as(key, 'POST', '/create_session', {}, { 'x-deployment': 'palestra/echo' });
  const sidOf = (body: unknown) => /data: (\S+)/.exec(String(body))![1]!;
  const create = (key: string, sid: string) =>
    as(key, 'POST', '/create', { split: 'train', index: 0 }, { 'x-deployment': 'palestra/echo', 'x-session-id': sid });
  const end = (key: string, sid: string) => as(key, 'POST', '/delete', {}, { 'x-session-id': sid });

  test('a key has a limit of open sessions; others wait for a slot and get one', async () => {
    const sids = await Promise.all(Array.from({ length: 6 }, async () => sidOf((await reserve(attacker.apiKey)).body)));
    const statuses = await Promise.all(sids.map(async (sid) => ({ sid, status: (await create(attacker.apiKey, sid)).status })));
    const open = statuses.filter(({ status }) => status === 200);
    expect(open).toHaveLength(3);
    expect(new Set(statuses.filter(({ status }) => status !== 200).map(({ status }) => status))).toEqual(new Set([429]));
    const theirs = sidOf((await reserve(neighbour.apiKey)).body);
    expect((await create(neighbour.apiKey, theirs)).status).toBe(200);
    const late = create(attacker.apiKey, statuses.find(({ status }) => status === 429)!.sid);
    await end(attacker.apiKey, open[0]!.sid);
    expect((await late).status).toBe(200);
    for (const { sid } of statuses) await end(attacker.apiKey, sid);
    await end(neighbour.apiKey, theirs);
  });

  test('an owner cannot raise the quota of the organisation or of a key', async () => {
    expect(await as(attacker.apiKey, 'PATCH', '/v1/organisation', { max_sessions: 1_000 })).toMatchObject({ status: 403 });
    expect(await as(attacker.apiKey, 'POST', '/v1/keys', { name: 'wide', max_sessions: 1_000 })).toMatchObject({ status: 403 });
    // As an earlier version let them.
    await server.database.pool.query('UPDATE organisations SET max_sessions = 1000 WHERE name = $1', [attacker.name]);
    await server.database.pool.query(
      'UPDATE api_keys SET max_sessions = 1000 WHERE org_id = (SELECT id FROM organisations WHERE name = $1)',
      [attacker.name],
    );
    const key = await newKey(attacker.apiKey);
    const made = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const sid = sidOf((await reserve(key)).body);
        return { sid, status: (await create(key, sid)).status };
      }),
    );
    expect(made.filter(({ status }) => status === 200)).toHaveLength(3);
    for (const { sid } of made) await end(key, sid);
    expect(await as(attacker.apiKey, 'PATCH', '/v1/organisation', { max_sessions: 2 })).toMatchObject({ body: { max_sessions: 2 } });
    expect(await as(attacker.apiKey, 'PATCH', '/v1/organisation', { max_sessions: null })).toMatchObject({ body: { max_sessions: null } });
  });

  test('endless reservations are limited', async () => {
    let status = 200;
    let reserved = 0;
    for (; status === 200 && reserved < 2_000; reserved += 50)
      status = Math.max(...(await Promise.all(Array.from({ length: 50 }, () => reserve(attacker.apiKey)))).map((answer) => answer.status));
    expect(status).toBe(429);
    expect((await reserve(neighbour.apiKey)).status).toBe(200);
  });
});

describe('M5: keys, members and organisations', () => {
  const inParallel = (count: number, make: (index: number) => Promise<{ status: number; body: any }>) =>
    Promise.all(Array.from({ length: count }, (_, index) => make(index)));
  let tenant: TestOrganisation;
  beforeAll(async () => {
    tenant = await createOrganisation(server.url, server.apiKey);
  });

  test('keys: also if they are created at once or revoked in between', async () => {
    const make = () => as(tenant.apiKey, 'POST', '/v1/keys', { name: 'k', scopes: ['sessions'] });
    const made = await inParallel(12, make);
    // One of eight is the tenant's first.
    expect(made.filter(({ status }) => status === 200)).toHaveLength(7);
    expect(made.find(({ status }) => status !== 200)).toMatchObject(refused);
    const { id } = made.find(({ status }) => status === 200)!.body;
    expect((await as(tenant.apiKey, 'DELETE', `/v1/keys/${id}`)).status).toBe(200);
    expect(await make()).toMatchObject(refused);
  });

  test('members', async () => {
    const made = await inParallel(8, (index) =>
      as(tenant.apiKey, 'POST', '/v1/members', { name: `m${index}-${Date.now()}`, role: 'owner' }),
    );
    expect(made.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(made.find(({ status }) => status !== 200)).toMatchObject(refused);
  });

  test('organisations: those of owners of created organisations count, too', async () => {
    const cookieOf = async (link: string) => ({ 'x-api-key': '', cookie: await signIn(link), 'sec-fetch-site': 'same-origin' });
    let headers: Record<string, string> = { 'x-api-key': tenant.apiKey };
    let count = 0;
    // From each new organisation the next one, by an owner of its own.
    for (; count < 20; count += 1) {
      const { status, body } = await server.request('POST', '/v1/organisations', {
        headers,
        body: { name: `deep-${count}-${Date.now()}` },
      });
      if (status !== 200) {
        expect({ status, body }).toMatchObject(refused);
        break;
      }
      const entered = await cookieOf(body.sign_in_url);
      const member = await server.request('POST', '/v1/members', {
        headers: entered,
        body: { name: `o${count}-${Date.now()}`, role: 'owner' },
      });
      headers = await cookieOf(member.body.sign_in_url);
    }
    expect(count).toBe(5);
  });

  test('browsers and links: the oldest are deleted', async () => {
    for (let i = 0; i < 4; i += 1) await inParallel(60, () => as('', 'POST', '/v1/login', { key: tenant.apiKey }));
    const { rows } = await server.database.pool.query(
      'SELECT count(*)::int AS count FROM browser_sessions WHERE org_id = (SELECT id FROM organisations WHERE name = $1)',
      [tenant.name],
    );
    expect(rows[0].count).toBeLessThanOrEqual(201);
  });
});

describe('M5: uploads', () => {
  test('those of one key are read one after another and lose nothing; another organisation does not wait', async () => {
    const upload = (key: string, index: number) =>
      as(key, 'POST', '/v1/rollouts', {
        events: [{ eventType: 'rollout', eventId: crypto.randomUUID(), timestamp: 1, runName: `upload-${index}` }],
      });
    const statuses = await Promise.all(Array.from({ length: 4 }, (_, index) => upload(attacker.apiKey, index)));
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    // One that is sent without end holds the key's place, and nobody else's.
    const aborter = new AbortController();
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{"events":[')) });
    const init = { method: 'POST', body, duplex: 'half', signal: aborter.signal, headers: { 'x-api-key': attacker.apiKey } };
    const endless = fetch(`${server.url}/v1/rollouts`, init as RequestInit).catch(() => null);
    expect((await upload(neighbour.apiKey, 0)).status).toBe(200);
    const waiting = upload(attacker.apiKey, 9);
    aborter.abort();
    await endless;
    expect((await waiting).status).toBe(200);
  });
});
