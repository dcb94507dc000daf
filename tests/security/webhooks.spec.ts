import { createHmac, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type http from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { errorCatalogue } from '@palestra/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createOrganisation } from '../support/organisation.ts';
import { createDatabase, startServer, type TestServer } from '../support/server.ts';
import { type Receiver, startReceiver } from '../integration/alerts/alerts.world.ts';

/** Receivers of webhooks are chosen by tenants: what they answer, or where they are, costs nothing and tells nothing. */
let server: TestServer;
let receiver: Receiver;
beforeAll(async () => {
  [server, receiver] = await Promise.all([startServer({ privateUpstreams: 'allowed' }), startReceiver()]);
}, 60_000);
afterAll(async () => {
  await server.close();
  await receiver.stop();
});

async function attemptAt(url: string) {
  const { status, body } = await server.request('POST', '/v1/webhooks', { body: { name: 'hostile', url } });
  expect(status).toBe(200);
  await server.request('POST', `/v1/webhooks/${body.id}/test`);
  const attempt = async () => (await server.request('GET', `/v1/webhooks/${body.id}/deliveries`)).body.deliveries[0]?.attempts[0];
  await expect.poll(attempt, { timeout: 60_000, interval: 200 }).toBeDefined();
  const first = await attempt();
  // What failed would be sent again, in five seconds, to the receiver of the next test.
  await server.request('DELETE', `/v1/webhooks/${body.id}`);
  return first;
}

describe('a receiver', () => {
  test('that redirects to the metadata service of a cloud is not followed', async () => {
    receiver.answer = (_request, response) => response.writeHead(307, { location: 'http://169.254.169.254/latest/meta-data/' }).end();
    expect(await attemptAt(receiver.url)).toMatchObject({ status: 307, error: 'The receiver answered 307; redirects are not followed.' });
  });

  test('that answers without end is read for 4 kB and not to the end', async () => {
    let sent = 0;
    const closed = new Promise<void>((resolve) => {
      receiver.answer = (_request, response) => {
        const chunk = Buffer.alloc(65_536, 'x');
        const send = () => {
          while (!response.destroyed && response.write(chunk)) sent += chunk.length;
          sent += chunk.length;
        };
        response.writeHead(200).on('drain', send).on('close', resolve);
        send();
      };
    });
    const { status, response } = await attemptAt(receiver.url);
    expect(status).toBe(200);
    expect(response).toHaveLength(1_000);
    await closed;
    // What the sockets hold.
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });

  test('that hangs ends after its time, holds nobody else, and no NUL of its answer is stored', async () => {
    const hanging: http.ServerResponse[] = [];
    receiver.answer = (_request, response) => void hanging.push(response);
    const slow = attemptAt(receiver.url);
    await expect.poll(() => hanging.length, { timeout: 30_000 }).toBe(1);
    const other = await startReceiver();
    other.answer = (_request, response) => response.end('a\0b');
    expect(await attemptAt(other.url)).toMatchObject({ status: 200, response: 'ab' });
    await other.stop();
    expect(await slow).toMatchObject({ status: null, error: 'No response within 10 s.' });
  }, 90_000);

  test.each(['file:///etc/passwd', 'ftp://example.com/', 'http://user:password@example.com/', 'javascript:alert(1)'])(
    'at %s is refused',
    async (url) => {
      expect(await server.request('POST', '/v1/webhooks', { body: { name: 'x', url } })).toMatchObject({
        status: 422,
        body: { code: 'invalid_body' },
      });
    },
  );

  test.each(['http://169.254.169.254/', 'http://[::ffff:169.254.169.254]/', 'http://2852039166/'])(
    'at %s is never reached',
    async (url) => {
      expect(await server.request('POST', '/v1/webhooks', { body: { name: 'x', url } })).toMatchObject({
        body: { code: 'upstream_address_refused' },
      });
    },
  );

  test('at an address that the operator does not allow is refused when it is added, and again at every attempt', async () => {
    const [database, dataDir] = [await createDatabase(), await mkdtemp(path.join(tmpdir(), 'palestra-webhooks-'))];
    const shared = { databaseUrl: database.url, dataDir };
    const calls = receiver.received.length;
    const before = await startServer({ ...shared, privateUpstreams: 'allowed', jobs: 'off' });
    const { body } = await before.request('POST', '/v1/webhooks', { body: { name: 'x', url: receiver.url } });
    await before.request('POST', `/v1/webhooks/${body.id}/test`);
    await before.close();
    const exposed = await startServer({ ...shared, privateUpstreams: 'refused' });
    try {
      const refused = await exposed.request('POST', '/v1/webhooks', { body: { name: 'x', url: receiver.url } });
      expect(refused.body).toMatchObject({ code: 'upstream_address_refused' });
      const attempt = async () => (await exposed.request('GET', `/v1/webhooks/${body.id}/deliveries`)).body.deliveries[0].attempts[0];
      await expect.poll(attempt, { timeout: 30_000 }).toMatchObject({ status: null, error: errorCatalogue.upstream_address_refused.text });
      expect(receiver.received).toHaveLength(calls);
    } finally {
      await exposed.close();
      await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    }
  }, 60_000);
});

test('only owners add, change and delete receivers', async () => {
  const { name } = await createOrganisation(server.url, server.apiKey);
  const { rows } = await server.database.pool.query(
    `WITH person AS (INSERT INTO users (name) VALUES ('member-' || gen_random_uuid()) RETURNING id),
       joined AS (INSERT INTO memberships (org_id, user_id, role) SELECT o.id, p.id, 'member' FROM organisations o, person p WHERE o.name = $1)
     INSERT INTO api_keys (org_id, user_id, name, prefix, hash, scopes) SELECT o.id, p.id, 'x', 'or_', sha256('or_a-member-key'::bytea), '{rollouts}'
     FROM organisations o, person p WHERE o.name = $1 RETURNING org_id`,
    [name],
  );
  expect(rows).toHaveLength(1);
  const headers = { 'x-api-key': 'or_a-member-key' };
  expect(await server.request('POST', '/v1/webhooks', { headers, body: { name: 'x', url: receiver.url } })).toMatchObject({
    status: 403,
    body: { code: 'owner_required' },
  });
  expect(await server.request('GET', '/v1/webhooks', { headers })).toMatchObject({ status: 200, body: { webhooks: [] } });
});

test('half-sent pushes to invented environments take no place from the webhook of a repository', async () => {
  const { id } = (await server.request('POST', '/v1/environments', { body: { name: 'pushed', description: '' } })).body;
  const link = { url: 'https://git.example/acme/envs.git' };
  const { secret } = (await server.request('PUT', `/v1/environments/${server.orgName}/pushed/git`, { body: link })).body;
  const { hostname, port } = new URL(server.url);
  const sockets = Array.from({ length: 40 }, () => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    socket.write(`POST /v1/hooks/git/${randomUUID()} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{`);
    return socket;
  });
  try {
    // The later ones find no place.
    await expect.poll(() => sockets.filter(({ bytesRead }) => bytesRead > 0).length, { timeout: 10_000 }).toBe(24);
    const body = '{}';
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    const headers = { 'content-type': 'application/json', 'x-github-event': 'ping', 'x-hub-signature-256': signature };
    const answer = await fetch(`${server.url}/v1/hooks/git/${id}`, { method: 'POST', headers, body });
    expect([answer.status, await answer.json()]).toMatchObject([202, { deploy: null }]);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test('half-sent pushes to the repositories of one organisation take no place from those of others', async () => {
  const body = { url: 'https://git.example/acme/envs.git' };
  const linked = async (owner: string, name: string, headers = {}): Promise<{ id: string; secret: string }> => {
    const { id } = (await server.request('POST', '/v1/environments', { headers, body: { name, description: '' } })).body;
    const { secret } = (await server.request('PUT', `/v1/environments/${owner}/${name}/git`, { headers, body })).body;
    return { id, secret };
  };
  const held = await Promise.all([1, 2, 3, 4].map((at) => linked(server.orgName, `held-${at}`)));
  const other = await createOrganisation(server.url, server.apiKey);
  const { id, secret } = await linked(other.name, 'pushed', { 'x-api-key': other.apiKey });
  const { hostname, port } = new URL(server.url);
  const open = (length: number) =>
    held.flatMap((one) =>
      Array.from({ length: 4 }, () => {
        const socket = connect(Number(port), hostname);
        socket.on('error', () => {});
        socket.write(`POST /v1/hooks/git/${one.id} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n{`);
        return socket;
      }),
    );
  const [small, large] = [open(100), open(100_000)];
  try {
    // Four of the large ones are read. The small ones do not count.
    await expect.poll(() => large.filter(({ bytesRead }) => bytesRead > 0).length, { timeout: 10_000 }).toBe(12);
    for (const text of ['{}', JSON.stringify({ text: 'x'.repeat(100_000) })]) {
      const signature = `sha256=${createHmac('sha256', secret).update(text).digest('hex')}`;
      const headers = { 'content-type': 'application/json', 'x-github-event': 'ping', 'x-hub-signature-256': signature };
      expect((await fetch(`${server.url}/v1/hooks/git/${id}`, { method: 'POST', headers, body: text })).status).toBe(202);
    }
  } finally {
    for (const socket of [...small, ...large]) socket.destroy();
  }
});
