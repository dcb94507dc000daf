import { afterAll, beforeAll, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { sharedServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

const run = 'moved';
const rollout = (name: string) => {
  const eventId = randomUUID();
  const result = { type: 'tool_result', content: 'done', reward: 1, isFinished: true };
  const message = { eventType: 'message', eventId: randomUUID(), rolloutEventId: eventId, timestamp: 2, index: 0, metadata: {}, ...result };
  return [
    {
      eventType: 'rollout',
      eventId,
      timestamp: 1,
      runName: run,
      rolloutName: name,
      environment: 'acme/told',
      split: 'train',
      metadata: {},
    },
    message,
  ];
};
const get = async (path: string) => (await server.request('GET', `/v1/runs/${run}${path}`)).body;

it('a step that all rollouts left has no figures', async () => {
  const names = Array.from({ length: 24 }, (_, i) => `told/${i % 3}/at${Math.floor(i / 6)}`);
  await server.request('POST', '/v1/rollouts', { body: { events: names.flatMap(rollout) } });
  await expect.poll(async () => (await get('/summary')).rollouts, { timeout: 20_000 }).toBe(24);
  const { body } = await server.request('GET', `/v1/runs?name=${run}`);
  const { id } = body.runs[0];

  const settings = { nameRegex: String.raw`/(?P<task>\d+)/at(?P<step>\d+)$` };
  expect((await server.request('PATCH', `/v1/runs/${id}`, { body: { settings } })).status).toBe(200);
  await expect.poll(async () => (await get('/summary')).steps.count, { timeout: 20_000 }).toBe(4);
  expect(await get('/summary')).toMatchObject({ rollouts: 24, steps: { from: 0, to: 3 } });
  expect((await server.request('GET', `/v1/runs/${id}`)).body.num_rollouts).toBe(24);

  await server.request('PATCH', `/v1/runs/${id}`, { body: { settings: {} } });
  // Which step they have afterwards is for the inference to say; that they are 24 is true all the time.
  expect((await server.request('GET', `/v1/runs/${id}`)).body.num_rollouts).toBe(24);
  await expect.poll(async () => (await get('/summary')).steps.count, { timeout: 20_000 }).not.toBe(4);
  expect((await server.request('GET', `/v1/runs/${id}`)).body.num_rollouts).toBe(24);
});

it('a rollout whose step is reported later is counted once by every read', async () => {
  const name = 'told late';
  const events = Array.from({ length: 12 }, (_, at) => {
    const eventId = randomUUID();
    const start = { eventType: 'rollout', eventId, timestamp: 1, runName: name, rolloutName: `solver ${at}`, environment: 'acme/told' };
    const told = { eventType: 'rollout_update', eventId, timestamp: 2, rollout_info: { current_step: 4 } };
    return { start: { ...start, split: 'train', metadata: {} }, told };
  });
  const counted = async () => {
    const { body } = await server.request('GET', `/v1/runs?name=${encodeURIComponent(name)}`);
    return body.runs[0].num_rollouts;
  };
  for (const [at, { start, told }] of events.entries()) {
    await server.request('POST', '/v1/rollouts', { body: { events: [start] } });
    expect(await counted()).toBe(at + 1);
    await server.request('POST', '/v1/rollouts', { body: { events: [told] } });
    expect(await counted()).toBe(at + 1);
  }
});
