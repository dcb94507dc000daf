import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { callTool, closeSession, eventually, openSession, startObserved, type World } from '../observed.world.ts';

/** Sessions that are kept as rollouts after they were opened without a run, and what the environment's pages then count. */
let server: TestServer;
let world: World;

beforeAll(async () => {
  server = await sharedServer();
  world = await startObserved(server);
});
afterAll(async () => {
  await server?.close();
  await world?.upstream.close();
});

const keep = (sid: string, body: object = {}) => server.request('POST', `/v1/sessions/${sid}/rollout`, { body });
const rollout = (id: string) =>
  eventually(async () => {
    const { status, body } = await server.request('GET', `/v1/rollouts/${id}`);
    return status === 200 && body.messages.length === 4 ? body : null;
  });

test('an unknown session, and one without an episode, are refused', async () => {
  expect(await keep('nobody')).toMatchObject({ status: 404, body: { code: 'session_not_found' } });
  const { body } = await server.request('POST', '/create_session', { body: {}, headers: { 'x-deployment': world.environment } });
  const sid = String(body).match(/data: (\S+)/)![1]!;
  expect(await keep(sid)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  const opened = await openSession(server, world.environment);
  expect(await keep(opened, { run: '' })).toMatchObject({ status: 422 });
});

test('an ended session becomes a verified rollout of its calls, once', async () => {
  const sid = await openSession(server, world.environment);
  await callTool(server, sid, 'score', { reward: 0.25 });
  await callTool(server, sid, 'score', { reward: 0.5, finished: true });
  await closeSession(server, sid);
  const kept = await keep(sid, { rollout: 'by hand' });
  expect(kept).toMatchObject({ status: 200, body: { sid, run: 'playground', rollout: 'by hand' } });
  const again = await keep(sid, { run: 'another' });
  expect(again.body).toEqual(kept.body);
  const view = await rollout(kept.body.rollout_id);
  expect(view.metadata).toMatchObject({ session_id: sid });
  const answered = view.messages.filter(({ type }: any) => type === 'tool_result');
  expect(answered.map(({ reward, isFinished }: any) => [reward, isFinished])).toEqual([
    [0.25, false],
    [0.5, true],
  ]);
  const { calls } = (await server.request('GET', `/v1/sessions/${sid}/calls`)).body;
  expect(answered.map(({ metadata }: any) => [metadata.task_id, metadata.latency_ms])).toEqual(
    calls.map((call: any) => [call.task_id, call.latency_ms]),
  );
  await eventually(async () => {
    const { body } = await server.request('GET', `/v1/rollouts/${kept.body.rollout_id}`);
    return body.verified === 'verified' && body.session === sid ? true : null;
  });
});

test('a running session that is kept is written until its end', async () => {
  const sid = await openSession(server, world.environment);
  await callTool(server, sid, 'score', { reward: 0.25 });
  const { body } = await keep(sid, { run: 'kept early' });
  await callTool(server, sid, 'score', { reward: 0.5, finished: true });
  await closeSession(server, sid);
  const view = await rollout(body.rollout_id);
  expect(view.messages.at(-1)).toMatchObject({ reward: 0.5, isFinished: true });
  expect((await server.request('GET', `/v1/sessions/${sid}`)).body).toMatchObject({ state: 'closed', recording: { run: 'kept early' } });
});

test('the difficulty of its tasks is per model size, independent of uploads', async () => {
  const start = (task_index: number, model_params: unknown) => ({
    eventType: 'rollout',
    eventId: randomUUID(),
    timestamp: 1,
    runName: 'sizes',
    environment: world.environment,
    split: 'sized',
    run_info: { model_params },
    rollout_info: { task_index, reward_total: 1 },
  });
  const events = [start(1, 7e9), start(2, '70000000000'), start(3, '7B'), start(4, { b: 7 }), start(5, '1e999'), start(6, null)];
  expect((await server.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
  await server.request('GET', '/v1/runs/sizes/rollouts');
  const tasks = async (query: string) => {
    const { status, body } = await server.request('GET', `/v1/environments/${world.environment}/task-difficulty?split=sized&${query}`);
    expect(status).toBe(200);
    return body.tasks.map((task: any) => task.task_index);
  };
  expect(await tasks('')).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await tasks('min_model_params=8000000000')).toEqual([2]);
  expect(await tasks('max_model_params=8000000000')).toEqual([1]);
  await server.request('DELETE', '/v1/runs/sizes');
});

test('the environment counts the runs that used it, and its versions', async () => {
  const [owner, name] = world.environment.split('/') as [string, string];
  const runs = await eventually(async () => {
    const { body } = await server.request('GET', `/v1/environments/${owner}/${name}/runs`);
    // A session is written as it goes: until its second call is there, its reward is the first one's.
    return body.runs.length === 2 && body.runs.every((run: any) => run.scored === 1 && run.reward_mean === 0.75) ? body.runs : null;
  });
  // Which of the two was written last is the recorder's business.
  expect(runs.toSorted((a: any, b: any) => a.name.localeCompare(b.name))).toMatchObject([
    { name: 'kept early', rollouts: 1 },
    { name: 'playground', rollouts: 1 },
  ]);
  const { body: usage } = await server.request('GET', '/v1/environment-usage');
  expect(usage.environments).toMatchObject([{ runs: 2, rollouts: 2, scored: 2, reward_mean: 0.75 }]);
  const { body: environment } = await server.request('GET', `/v1/environments/${owner}/${name}`);
  expect(usage.environments[0].environment_id).toBe(environment.id);
  const { body: before } = await server.request('GET', `/v1/environments/${owner}/${name}/versions`);
  expect(before.versions).toMatchObject([{ number: 1, source: { kind: 'remote', url: world.upstream.url }, num_tasks: 2 }]);
  await server.request('POST', `/v1/environments/${owner}/${name}/versions`, {
    body: { source: { kind: 'remote', url: world.upstream.url } },
  });
  const { body: after } = await server.request('GET', `/v1/environments/${owner}/${name}/versions`);
  expect(after.versions.map(({ number }: any) => number)).toEqual([2, 1]);
  const sid = await openSession(server, world.environment);
  const { body: slots } = await server.request('GET', `/v1/slots?environment=${encodeURIComponent(world.environment)}`);
  const held = slots.environments.flatMap(({ sessions }: any) => sessions).find((session: any) => session.sid === sid);
  expect(held.task).toEqual({ split: 'train', index: 0 });
});
