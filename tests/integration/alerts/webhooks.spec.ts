import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createDatabase, startServer, type TestServer } from '../../support/server.ts';
import { killed, spawnWorker } from '../../support/worker.ts';
import { isSigned, type Receiver, skipPauses, startReceiver, toolErrors, uploadStep } from './alerts.world.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 60_000);
afterAll(() => server.close());

async function receiverOf(): Promise<Receiver> {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.stop());
  return receiver;
}
const deliveriesOf = async (on: TestServer, id: string) => (await on.request('GET', `/v1/webhooks/${id}/deliveries`)).body.deliveries;
async function webhookOf(on: TestServer, { url }: Receiver): Promise<{ id: string; secret: string }> {
  const { status, body } = await on.request('POST', '/v1/webhooks', { body: { name: 'receiver', url } });
  expect(status).toBe(200);
  return body;
}

it('an alert is delivered signed, with its evidence; a receiver that fails twice gets the same message again', async () => {
  const receiver = await receiverOf();
  receiver.answer = (_request, response, count) => response.writeHead(count < 3 ? 500 : 200).end(count < 3 ? 'not now' : 'thanks');
  const { id, secret } = await webhookOf(server, receiver);
  await server.request('POST', '/v1/alerts', { body: toolErrors({ runs: 'signed', webhook: id }) });
  await uploadStep(server, 'signed', { step: 7, failed: 10 });
  for (const count of [1, 2, 3]) {
    await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(count);
    await expect.poll(async () => (await deliveriesOf(server, id))[0].attempts.length, { timeout: 20_000 }).toBe(count);
    await skipPauses(server);
  }
  expect(receiver.received.every((one) => isSigned(one, secret))).toBe(true);
  expect(isSigned({ ...receiver.received[0]!, body: '{}' }, secret)).toBe(false);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  expect(JSON.parse(receiver.received[0]!.body)).toMatchObject({
    type: 'alert.firing',
    version: 1,
    data: {
      alert: { name: 'tool errors of accuse', condition: 'Tool errors of accuse above 10 % at a step' },
      run: { name: 'signed', url: expect.stringContaining(server.url) },
      evidence: { value: 0.5, n: 20, step: 7, url: expect.stringContaining('tool.error') },
    },
  });
  await expect
    .poll(async () => (await deliveriesOf(server, id))[0], { timeout: 20_000 })
    .toMatchObject({
      state: 'delivered',
      next_at: null,
      attempts: [
        { status: 200, error: null, response: 'thanks' },
        { status: 500, error: 'The receiver answered 500.', response: 'not now' },
        { status: 500 },
      ],
    });
}, 180_000);

it.each([
  ['seconds', 429, () => '3600', 3_600],
  ['a date', 503, () => new Date(Date.now() + 7_200_000).toUTCString(), 7_200],
  ['more than the day of attempts', 429, () => '99999999', 85_355],
  ['nothing to other answers', 500, () => '3600', 5],
])(
  'a receiver asks for a pause by Retry-After: %s',
  async (_name, status, retryAfter, expected) => {
    const receiver = await receiverOf();
    receiver.answer = (_request, response) => response.writeHead(status, { 'retry-after': retryAfter() }).end();
    const { id } = await webhookOf(server, receiver);
    await server.request('POST', `/v1/webhooks/${id}/test`);
    await expect.poll(async () => (await deliveriesOf(server, id))[0].attempts.length, { timeout: 30_000 }).toBe(1);
    const [{ state, next_at: nextAt, attempts }] = await deliveriesOf(server, id);
    expect(state).toBe('waiting');
    const pauseS = (Date.parse(nextAt) - Date.parse(attempts[0].at)) / 1_000;
    // An HTTP date has no fractions of a second; the attempt took a moment.
    expect(pauseS).toBeGreaterThan(expected - 2);
    expect(pauseS).toBeLessThan(expected + 30);
    const { rows } = await server.database.pool.query('SELECT tries FROM webhook_deliveries WHERE webhook_id = $1', [id]);
    if (expected === 85_355) {
      // The last attempt.
      await server.database.pool.query('UPDATE webhook_deliveries SET next_at = now() WHERE webhook_id = $1', [id]);
      await expect
        .poll(async () => (await deliveriesOf(server, id))[0], { timeout: 30_000 })
        .toMatchObject({ state: 'failed', next_at: null });
    } else expect(rows[0].tries).toBe(expected === 5 ? 1 : 6);
  },
  60_000,
);

it('the secret is shown once, stored sealed, and both secrets sign after a replacement', async () => {
  const receiver = await receiverOf();
  const { id, secret } = await webhookOf(server, receiver);
  const { rows } = await server.database.pool.query('SELECT secrets FROM webhooks WHERE id = $1', [id]);
  expect(rows[0].secrets.includes(secret)).toBe(false);
  expect(JSON.stringify((await server.request('GET', '/v1/webhooks')).body)).not.toContain('whsec_');
  const replaced = (await server.request('POST', `/v1/webhooks/${id}/secret`)).body;
  expect(await server.request('POST', `/v1/webhooks/${id}/test`)).toMatchObject({ status: 200 });
  await expect.poll(() => receiver.received.length, { timeout: 30_000 }).toBe(1);
  expect(isSigned(receiver.received[0]!, secret)).toBe(true);
  expect(isSigned(receiver.received[0]!, replaced.secret)).toBe(true);
  expect(JSON.parse(receiver.received[0]!.body)).toMatchObject({ type: 'webhook.test' });
  const { rows: audited } = await server.database.pool.query(`SELECT action, details FROM audit_log WHERE target_id = $1 ORDER BY id`, [
    id,
  ]);
  expect(audited.map(({ action }) => action)).toEqual(['webhook.create', 'webhook.rotate']);
  expect(JSON.stringify(audited)).not.toContain('/hook');
}, 60_000);

it('a message is signed after the service replaced its key', async () => {
  const receiver = await receiverOf();
  const { id, secret } = await webhookOf(server, receiver);
  for (const drop_previous of [false, true])
    expect(await server.request('POST', '/v1/keys/rotate-secret', { body: { drop_previous } })).toMatchObject({
      status: 200,
      body: { unreadable: 0 },
    });
  await server.request('POST', `/v1/webhooks/${id}/test`);
  await expect.poll(() => receiver.received.length, { timeout: 30_000 }).toBe(1);
  expect(isSigned(receiver.received[0]!, secret)).toBe(true);
}, 60_000);

it('410 disables a receiver; enabled again, a delivery is sent again with the same id', async () => {
  const receiver = await receiverOf();
  receiver.answer = (_request, response, count) => response.writeHead(count === 1 ? 410 : 200).end();
  const { id } = await webhookOf(server, receiver);
  await server.request('POST', `/v1/webhooks/${id}/test`);
  const known = async () => (await server.request('GET', '/v1/webhooks')).body.webhooks.find((one: { id: string }) => one.id === id);
  await expect.poll(known, { timeout: 30_000 }).toMatchObject({ enabled: false, disabled_reason: 'The receiver answered 410 Gone.' });
  const [delivery] = await deliveriesOf(server, id);
  expect(delivery).toMatchObject({ state: 'failed' });
  const again = `/v1/webhooks/${id}/deliveries/${delivery.id}/redeliver`;
  const unknown = again.replace(delivery.id, '00000000-0000-4000-8000-000000000000');
  expect(await server.request('POST', again)).toMatchObject({ status: 409, body: { code: 'webhook_disabled' } });
  await server.request('PATCH', `/v1/webhooks/${id}`, { body: { enabled: true } });
  expect(await server.request('POST', unknown)).toMatchObject({ status: 404, body: { code: 'delivery_not_found' } });
  expect(await server.request('POST', again)).toMatchObject({ status: 200 });
  await expect.poll(() => receiver.received.length, { timeout: 30_000 }).toBe(2);
  expect(receiver.received[1]!.headers['webhook-id']).toBe(receiver.received[0]!.headers['webhook-id']);
}, 60_000);

it('a worker that is killed during a delivery leaves it to another one: delivered at least once, with the same id', async () => {
  const [database, dataDir] = [await createDatabase(), await mkdtemp(path.join(tmpdir(), 'palestra-alerts-'))];
  const api = await startServer({ databaseUrl: database.url, dataDir, jobs: 'off' });
  onTestFinished(async () => {
    await api.close();
    await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  });
  const receiver = await receiverOf();
  // The first attempt is never answered.
  receiver.answer = (_request, response, count) => void (count > 1 && response.end());
  const { id, secret } = await webhookOf(api, receiver);
  await api.request('POST', '/v1/alerts', { body: toolErrors({ runs: 'killed', webhook: id }) });
  await uploadStep(api, 'killed', { step: 0, failed: 20 });
  const first = await spawnWorker(database.url, dataDir);
  await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(1);
  await killed(first);
  await skipPauses(api);
  await spawnWorker(database.url, dataDir);
  await expect.poll(() => receiver.received.length, { timeout: 90_000 }).toBeGreaterThan(1);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(receiver.received.every((one) => isSigned(one, secret))).toBe(true);
  await expect
    .poll(async () => (await deliveriesOf(api, id)).map(({ state }: { state: string }) => state), { timeout: 30_000 })
    .toEqual(['delivered']);
}, 240_000);
