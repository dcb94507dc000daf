import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Trainers number prompts by environment: the same id of a group, at one step, in two environments or variants of one. */
let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const rollout = (start: object, reward: number): object[] => {
  const id = randomUUID();
  const message = { eventType: 'message', eventId: randomUUID(), rolloutEventId: id, timestamp: 1, index: 0, type: 'assistant_message' };
  return [
    { eventType: 'rollout', eventId: id, timestamp: 1, runName: 'mixed', ...start },
    { ...message, content: 'x', reward, isFinished: true, metadata: {} },
  ];
};

test.each([
  ['a reported id', { step: 1, metadata: { group_id: '0' } }],
  ['a task and a step', { step: 2, rollout_info: { task_index: 0 } }],
  ['a task alone', { rollout_info: { task_index: 0 } }],
])('groups by %s are groups of their environments', async (_by, start) => {
  const environments = [{ environment: 'acme/a' }, { environment: 'acme/b' }, { environment: 'acme/b', variant: 'hard' }];
  const events = environments.flatMap((place, at) => [0, 1].flatMap((sample) => rollout({ ...start, ...place }, at === 0 ? sample : 0)));
  const { status } = await server.request('POST', '/v1/rollouts', { body: { events } });
  expect(status).toBe(200);
  await settled(server.database.pool, server.orgName);
  const step = 'step' in start ? start.step : -1;
  const { rows } = await server.database.pool.query(
    `SELECT e.environment, n, successes FROM rollout_groups g JOIN rollout_environments e ON e.id = g.env_id JOIN organisations o ON o.id = e.org_id
     WHERE step = $1 AND o.name = $2 ORDER BY 1, 3`,
    [step, server.orgName],
  );
  expect(rows).toEqual([
    { environment: 'acme/a', n: 2, successes: 1 },
    { environment: 'acme/b', n: 2, successes: 0 },
    { environment: 'acme/b', n: 2, successes: 0 },
  ]);
});
