import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PalestraClient } from '@palestra/client';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Uploads that name neither their session nor their task, of sessions that ran here. */
const quiz = defineEnvironment({
  name: 'quiz',
  splits: ['train', 'test'],
  tasks: () => [{}, {}, {}, {}],
  prompt: () => 'Answer.',
  tools: {
    answer: tool({
      description: 'Ends it',
      input: z.object({ value: z.string() }),
      run: () => ({ content: [{ type: 'text' as const, text: 'noted', detail: null }], reward: 1, finished: true }),
    }),
  },
});

let server: TestServer;
let upstream: RunningServer;
let client: PalestraClient;
const environment = () => `${server.orgName}/quiz`;

beforeAll(async () => {
  server = await sharedServer();
  upstream = await serve([quiz]);
  client = new PalestraClient({ url: server.url, apiKey: server.apiKey });
  await client.environments.add({ name: 'quiz', url: upstream.url });
});
afterAll(async () => {
  await client?.close();
  await server?.close();
  await upstream?.close();
});

async function play(index: number, value: string): Promise<void> {
  const session = await client.session({ environment: environment(), split: 'train', index });
  await session.call('answer', { value } as never);
  await session.close();
}

function rolloutOf(run: string, value: string, metadata: object) {
  const eventId = randomUUID();
  const timestamp = Date.now();
  const message = (index: number, rest: object) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: eventId,
    timestamp,
    index,
    isFinished: false,
    metadata: {},
    ...rest,
  });
  return [
    { eventType: 'rollout', eventId, timestamp, runName: run, environment: environment(), metadata },
    message(0, { type: 'user_message', content: 'Answer.' }),
    message(1, { type: 'tool_call', name: 'answer', callId: 'c', content: JSON.stringify({ value }) }),
    message(2, { type: 'tool_result', callId: 'c', content: 'noted', reward: 1, isFinished: true }),
  ];
}
const upload = async (events: object[]) => expect((await server.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
const rolloutsOf = async (run: string) => (await server.request('GET', `/v1/runs/${run}/rollouts?limit=50`)).body.rollouts;

test('four samples of four tasks are four groups of four, with the split and the index of their sessions', async () => {
  const tasks = [0, 1, 2, 3];
  for (const index of tasks) for (let sample = 0; sample < 4; sample += 1) await play(index, `task ${index}`);
  await upload(tasks.flatMap((index) => tasks.flatMap((sample) => rolloutOf('quizzed', `task ${index}`, { step: 3, sample }))));

  const groupsOf = async () => (await server.request('GET', '/v1/runs/quizzed/groups?limit=50')).body.groups;
  await expect.poll(async () => (await groupsOf()).map(({ received }: { received: number }) => received)).toEqual([4, 4, 4, 4]);
  const rollouts = await rolloutsOf('quizzed');
  expect(rollouts.map(({ split }: { split: string }) => split)).toEqual(Array.from({ length: 16 }, () => 'train'));
  const { body } = await server.request('GET', `/v1/rollouts/${rollouts[0].id}`);
  expect(body).toMatchObject({ verified: 'verified', provenance: { sample: 'reported' } });
  expect(tasks).toContain(body.task_index);
});

test('a rollout that matches sessions of several tasks keeps no task, and an advisory says what to send', async () => {
  await play(0, 'the same');
  await play(1, 'the same');
  await upload(rolloutOf('ambiguous', 'the same', { step: 1 }));

  const advisories = async () => (await server.request('GET', '/v1/runs/ambiguous/summary')).body.advisories;
  await expect.poll(advisories).toContainEqual(
    expect.objectContaining({
      rule: 'ambiguous_task',
      value: 1,
      q: 'has:ambiguous_task',
      text: expect.stringContaining('Send session_id'),
    }),
  );
  const found = await server.request('GET', '/v1/runs/ambiguous/rollouts?q=has:ambiguous_task');
  expect(found.body.rollouts).toHaveLength(1);
  expect(found.body.rollouts[0]).toMatchObject({ split: null });
});
