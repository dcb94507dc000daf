import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createOrganisation } from '../../support/organisation.ts';
import { requestWith, startServer, type TestServer } from '../../support/server.ts';
import { judgeNow, type Receiver, startReceiver } from './alerts.world.ts';

/** Alerts on hosted environments whose instances fail again and again. Rows of instances are those that the reconciler writes. */

let server: TestServer;
let webhooks: Receiver;
beforeAll(async () => {
  [server, webhooks] = await Promise.all([startServer(), startReceiver()]);
}, 60_000);
afterAll(async () => {
  await server.close();
  await webhooks.stop();
});

const made = async (method: string, url: string, body?: unknown) => {
  const answer = await server.request(method, url, body === undefined ? {} : { body });
  expect({ url, status: answer.status, body: answer.status === 200 ? null : answer.body }).toMatchObject({ status: 200 });
  return answer.body;
};
const query = (text: string, values: unknown[]) => server.database.pool.query(text, values);

/** Instances of a version that failed just now. A round of judgements sees all of them or none. */
async function fail(environment: { id: string; org: string }, version: string, count: number): Promise<void> {
  await query(
    `INSERT INTO environment_instances (environment_id, version_id, org_id, provider, state, detail, stopped_at)
     SELECT $1::uuid, $2::uuid, $3::uuid, 'process', 'failed', 'It exited with status 1: no module named torch', clock_timestamp()
     FROM generate_series(1, $4::int)`,
    [environment.id, version, environment.org, count],
  );
}

it('fires when instances of a version keep failing, tells the webhook, and is resolved when they no longer do', async () => {
  const { id, owner, name } = await made('POST', '/v1/environments', { name: 'crashing' });
  const org = (await query('SELECT org_id FROM environments WHERE id = $1', [id])).rows[0]!.org_id as string;
  await query(`UPDATE environments SET hosting = '{}' WHERE id = $1`, [id]);
  const webhook = await made('POST', '/v1/webhooks', { name: 'on-call', url: webhooks.url });
  const alert = await made('POST', '/v1/alerts', {
    name: 'crash loops',
    condition: { kind: 'crashes', count: 3, minutes: 10 },
    webhook: webhook.id,
  });
  expect(alert.condition_text).toBe('At least 3 failed instances of a version of a hosted environment within 10 min');

  // The one of another version is not counted.
  const [one, other] = [randomUUID(), randomUUID()];
  await fail({ id, org }, one, 2);
  await fail({ id, org }, other, 1);
  const changes = async () => (await made('GET', `/v1/alert-events?alert=${alert.id}`)).events;
  await fail({ id, org }, one, 2);
  await expect.poll(async () => (await changes()).length, { timeout: 60_000, interval: 250 }).toBe(1);
  const [event] = await changes();
  expect(event).toMatchObject({ kind: 'firing', run: null, environment: `${owner}/${name}`, evidence: { value: 4, threshold: 3 } });
  expect(event.evidence.text).toBe(
    `4 instances of ${owner}/${name} failed within 10 min. The last one: It exited with status 1: no module named torch`,
  );
  const listed = (await made('GET', '/v1/alerts')).alerts.find((one: { id: string }) => one.id === alert.id);
  expect(listed.firing).toMatchObject([{ run: null, environment: `${owner}/${name}` }]);
  await expect.poll(() => webhooks.received.length, { timeout: 60_000, interval: 100 }).toBe(1);
  expect(JSON.parse(webhooks.received[0]!.body)).toMatchObject({
    type: 'alert.firing',
    data: {
      run: null,
      environment: { name: `${owner}/${name}`, url: expect.stringContaining(`/environments/${owner}/${name}`) as string },
    },
  });

  await query(`UPDATE environment_instances SET stopped_at = now() - interval '11 minutes' WHERE environment_id = $1`, [id]);
  await expect
    .poll(async () => (await changes()).map(({ kind }: { kind: string }) => kind), { timeout: 60_000, interval: 250 })
    .toEqual(['resolved', 'firing']);
});

it('failures before the alert are no news', async () => {
  const { id } = await made('POST', '/v1/environments', { name: 'was-crashing' });
  const org = (await query('SELECT org_id FROM environments WHERE id = $1', [id])).rows[0]!.org_id as string;
  await query(`UPDATE environments SET hosting = '{}' WHERE id = $1`, [id]);
  await fail({ id, org }, randomUUID(), 5);
  const alert = await made('POST', '/v1/alerts', { name: 'later', condition: { kind: 'crashes', count: 1 } });
  await fail({ id: (await made('POST', '/v1/environments', { name: 'news' })).id, org }, randomUUID(), 1);
  await query(`UPDATE environments SET hosting = '{}' WHERE name = 'news'`, []);
  const subjects = async () =>
    (await made('GET', `/v1/alert-events?alert=${alert.id}`)).events.map(
      ({ environment }: { environment: string }) => environment.split('/')[1],
    );
  await expect.poll(subjects, { timeout: 60_000, interval: 250 }).toEqual(['news']);
  await made('DELETE', `/v1/alerts/${alert.id}`);
});

it('an organisation that hosts an environment has an alert that nobody made, once', async () => {
  const [first, second] = [await newOrganisation(), await newOrganisation()];
  expect((await first.get('/v1/alerts')).alerts).toEqual([]);
  await fail(await first.host('looping'), randomUUID(), 3);
  const news =
    ({ get }: typeof first) =>
    async () =>
      (await get('/v1/alert-events')).unread;
  await judgeNow(server);
  await expect.poll(news(first), { timeout: 60_000, interval: 250 }).toBe(1);
  expect((await first.get('/v1/alert-events')).events).toMatchObject([
    {
      kind: 'firing',
      alert: { name: 'Hosted environment keeps crashing' },
      environment: `${first.name}/looping`,
      evidence: { value: 3, threshold: 3 },
    },
  ]);
  const { alerts } = await first.get('/v1/alerts');
  expect(alerts).toMatchObject([
    {
      condition_text: 'At least 3 failed instances of a version of a hosted environment within 10 min',
      author: 'Palestra',
      firing: [{ environment: `${first.name}/looping` }],
    },
  ]);

  // Deleted, it does not return: the round in which the other organisation gets its own is a later one.
  await first.request('DELETE', `/v1/alerts/${alerts[0].id}`);
  await fail(await first.host('also-looping'), randomUUID(), 3);
  await fail(await second.host('looping'), randomUUID(), 3);
  await judgeNow(server);
  await expect.poll(news(second), { timeout: 60_000, interval: 250 }).toBe(1);
  expect((await first.get('/v1/alerts')).alerts).toEqual([]);
  expect(await news(first)()).toBe(0);
});

async function newOrganisation() {
  const { name, apiKey } = await createOrganisation(server.url, server.apiKey);
  const request = requestWith(server.url, apiKey);
  const org = (await query('SELECT id FROM organisations WHERE name = $1', [name])).rows[0]!.id as string;
  return {
    name,
    request,
    get: async (url: string) => {
      const { status, body } = await request('GET', url);
      expect({ url, status }).toEqual({ url, status: 200 });
      return body;
    },
    /** An environment that is hosted, as a deploy leaves it. */
    async host(environment: string) {
      const { status, body } = await request('POST', '/v1/environments', { body: { name: environment } });
      expect({ status, body: status === 200 ? null : body }).toEqual({ status: 200, body: null });
      await query(`UPDATE environments SET hosting = '{}' WHERE id = $1`, [body.id]);
      return { id: body.id as string, org };
    },
  };
}
