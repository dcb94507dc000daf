import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { PalestraClient } from './client.ts';
import type { UploaderOptions } from './rollout-uploader.ts';
import { json, startTestServer } from './test-server.fixture.ts';

/** A service that stores events as their ids, unless `refuse` answers. `bodies`: the number of events of each request. */
async function serviceOf(uploads: UploaderOptions = {}) {
  const stored: string[] = [];
  const bodies: number[] = [];
  const state = { refuse: null as ((response: ServerResponse, key: unknown) => boolean) | null };
  const url = await startTestServer((_path, body, response, request) => {
    const events = body['events'] as { eventId: string }[];
    bodies.push(events.length);
    if (state.refuse?.(response, request.headers['x-api-key'])) return;
    stored.push(...events.map(({ eventId }) => eventId));
    json(response, {});
  });
  const client = new PalestraClient({ url, apiKey: 'first', uploads: { maxAgeMs: 5, ...uploads } });
  onTestFinished(async () => void (await client.close()));
  return { client, stored, bodies, state };
}
const revoked = (response: ServerResponse): boolean => {
  json(response, { code: 'key_revoked', detail: 'This API key was revoked.' }, 401);
  return true;
};

test('keeps what a revoked key could not store, and stores it once with another key', async () => {
  const { client, stored, state } = await serviceOf();
  state.refuse = (response, key) => key === 'first' && revoked(response);
  const rollout = await client.rollouts.start({ runName: 'r' });
  for (let index = 0; index < 300; index += 1) await rollout.log({ type: 'user_message', content: 'x' });
  const report = await client.rollouts.flush();
  expect(report).toMatchObject({ stored: 0, unsent: 301, error: { code: 'key_revoked', failureClass: 'infrastructure' } });
  const kept = client.rollouts.unsent().map(({ eventId }) => eventId);
  client.setApiKey('second');
  expect(await client.rollouts.flush()).toEqual({ stored: 301, unsent: 0, error: null });
  expect(new Set(stored)).toEqual(new Set(kept));
  expect(stored).toHaveLength(301);
});

test('sets refused events aside and stores the others', async () => {
  const { client, stored, state } = await serviceOf({ maxBatchEvents: 1, concurrency: 1 });
  let requests = 0;
  state.refuse = (response) => {
    requests += 1;
    if (requests === 2) json(response, { code: 'invalid_body', detail: 'no' }, 422);
    return requests === 2;
  };
  const rollout = await client.rollouts.start({ runName: 'r' });
  for (let index = 0; index < 3; index += 1) await rollout.log({ type: 'user_message', content: String(index) });
  expect(await client.rollouts.flush()).toMatchObject({ stored: 3, unsent: 1, error: { code: 'invalid_body' } });
  expect(client.rollouts.unsent()).toMatchObject([{ content: '0' }]);
  expect(stored).toHaveLength(3);
});

test('sets the events of a batch aside that the service rejects', async () => {
  const { client, state } = await serviceOf();
  const rejected = [{ position: 1, event_id: null, detail: 'content: Invalid JSON' }];
  state.refuse = (response) => (json(response, { accepted: 2, duplicates: 0, conflicts: 0, rejected }), true);
  const rollout = await client.rollouts.start({ runName: 'r' });
  await rollout.log({ type: 'tool_call', name: 'submit', content: '{' });
  await rollout.log({ type: 'user_message', content: 'x' });
  const report = await client.rollouts.flush();
  expect(report).toMatchObject({ stored: 2, unsent: 1, error: { code: 'invalid_body', detail: 'content: Invalid JSON' } });
  expect(client.rollouts.unsent()).toMatchObject([{ type: 'tool_call' }]);
});

test('a full queue waits while the service stores, and rejects with its error when it does not', async () => {
  const { client, state } = await serviceOf({ maxQueued: 10, maxBatchEvents: 4, concurrency: 1 });
  const rollout = await client.rollouts.start({ runName: 'r' });
  for (let index = 0; index < 50; index += 1) await rollout.log({ type: 'user_message', content: 'x' });
  expect(await client.rollouts.flush()).toEqual({ stored: 51, unsent: 0, error: null });
  state.refuse = revoked;
  const fill = async () => {
    for (let index = 0; index < 20; index += 1) await rollout.log({ type: 'user_message', content: 'x' });
  };
  await expect(fill()).rejects.toMatchObject({ code: 'key_revoked' });
  expect(client.rollouts.unsent()).toHaveLength(10);
});

test('memory is bounded by events and by bytes, and requests by both', async () => {
  const { client, bodies, state } = await serviceOf({ maxQueued: 1_000, maxQueuedBytes: 100_000, maxBatchBytes: 20_000, concurrency: 2 });
  let open = 0;
  let mostOpen = 0;
  let mostUnsent = 0;
  state.refuse = (response) => {
    open += 1;
    mostOpen = Math.max(mostOpen, open);
    setImmediate(() => {
      open -= 1;
      json(response, {});
    });
    return true;
  };
  const rollout = await client.rollouts.start({ runName: 'r' });
  for (let index = 0; index < 2_000; index += 1) {
    await rollout.log({ type: 'user_message', content: 'x'.repeat(1_000) });
    if (index % 100 === 0) mostUnsent = Math.max(mostUnsent, client.rollouts.unsent().length);
  }
  expect(await client.rollouts.flush()).toEqual({ stored: 2_001, unsent: 0, error: null });
  expect(mostOpen).toBeLessThanOrEqual(2);
  // An event has more than 1000 bytes.
  expect(mostUnsent).toBeLessThan(100);
  expect(Math.max(...bodies)).toBeLessThan(20);
});
