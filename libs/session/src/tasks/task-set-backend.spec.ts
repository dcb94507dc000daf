import type { JsonObject, Message } from '@palestra/protocol';
import type { Backend, BackendCreate, BackendSession } from '../ports/backend.port.ts';
import type { OpenEnvMessage } from '../ports/openenv.port.ts';
import { describe, expect, test } from 'vitest';
import { TaskSetBackend } from './task-set-backend.ts';
import type { TaskSource } from './task-source.ts';

/** What reaches the environment's server when tasks were uploaded for it. */
const SPECS = [{ id: 'a', seed: 1 }, { id: 'b', seed: 2 }, 'a text'];
const said: Message[] = [{ role: 'user', blocks: [{ type: 'text', text: 'uploaded', detail: null }], detail: null }];
const signal = AbortSignal.timeout(60_000);

const source: TaskSource = {
  splits: async () => [
    { name: 'train', type: 'train', num_tasks: 3 },
    { name: 'huge', type: 'validation', num_tasks: 1_000_000 },
  ],
  specs: async (_split, start, stop) => SPECS.slice(start, stop),
  prompt: async ({ index }) => (index === 1 ? said : null),
  find: async (spec) => (JSON.stringify(spec) === JSON.stringify(SPECS[1]) ? { split: 'train', index: 1 } : null),
  findById: async (id) => (id === 'b' ? { split: 'train', index: 1 } : null),
};

function world(openenv = false) {
  const seen: unknown[] = [];
  let ready = 0;
  const session = {
    ready: async () => void (ready += 1),
    prompt: async () => [{ type: 'text', text: 'own', detail: null }],
    messages: async () => [],
    ...(openenv && {
      openenv: {
        exchange: async (message: OpenEnvMessage) => {
          seen.push(message);
          return { reply: '{}', result: { text: '', ok: true, reason: null, reward: null, finished: false } };
        },
      },
    }),
  } as unknown as BackendSession;
  const inner = {
    environments: async () => ['env'],
    create: async (request: BackendCreate) => {
      seen.push(request.task);
      return { number: seen.length };
    },
    session: () => session,
    ...(openenv && {
      openenv: {
        shape: async () => ({}),
        relay: async ({ path, body }: { path: string; body: Buffer | null }) => {
          seen.push([path, body?.toString()]);
          return { status: 418, body: Buffer.from('theirs'), contentType: 'text/plain' };
        },
      },
    }),
  } as unknown as Backend;
  return { backend: new TaskSetBackend(inner, source), seen, ready: () => ready };
}

const create = (task: BackendCreate['task']): BackendCreate => ({ sid: 's', env: null, task, toolsetName: null, secrets: {} });

describe('tasks', () => {
  test('are those of the source; positions count as in Python', async () => {
    const { backend } = world();
    expect(await backend.splits(null, signal)).toEqual([
      { name: 'train', type: 'train' },
      { name: 'huge', type: 'validation' },
    ]);
    expect(await backend.task(null, 'train', -3, signal)).toEqual(SPECS[0]);
    expect(await backend.taskRange(null, 'train', -2, null, signal)).toEqual(SPECS.slice(1));
    expect(await backend.taskRange(null, 'train', 2, 1, signal)).toEqual([]);
    await expect(backend.task(null, 'train', 3, signal)).rejects.toMatchObject({ code: 'invalid_index' });
    await expect(backend.task(null, 'train', -4, signal)).rejects.toMatchObject({ code: 'invalid_index' });
    await expect(backend.tasks(null, 'nope', signal)).rejects.toMatchObject({ code: 'invalid_split' });
    await expect(backend.tasks(null, 'huge', signal)).rejects.toMatchObject({ code: 'tasks_not_listable' });
    await expect(backend.taskRange(null, 'huge', null, null, signal)).rejects.toMatchObject({ code: 'invalid_index_range' });
  });

  test('open episodes by what stands there, with their own prompt after setup', async () => {
    const { backend, seen, ready } = world();
    const plain = await backend.create(create({ kind: 'index', split: 'train', index: 0 }), signal);
    const prompted = await backend.create(create({ kind: 'index', split: 'train', index: -2 }), signal);
    const bySpec = await backend.create(create({ kind: 'spec', spec: SPECS[1] }), signal);
    expect(seen).toEqual([0, 1, 1].map((index) => ({ kind: 'spec', spec: SPECS[index] })));
    expect(await backend.session(plain).prompt(signal)).toMatchObject([{ text: 'own' }]);
    expect(ready()).toBe(0);
    // The reference is stored as JSON, and read by another process.
    for (const ref of [prompted, bySpec].map((one) => JSON.parse(JSON.stringify(one)) as JsonObject)) {
      expect(await backend.session(ref).prompt(signal)).toEqual(said[0]!.blocks);
      expect(await backend.session(ref).messages(signal)).toEqual(said);
    }
    expect(ready()).toBe(4);
  });
});

describe('an OpenEnv server', () => {
  test('is none where the inner backend is none', () => {
    expect(world().backend.openenv).toBeUndefined();
  });

  test('answers the Task API with the uploaded tasks', async () => {
    const { backend, seen } = world(true);
    const ask = async (method: 'GET' | 'POST', path: string, body?: object) => {
      const request = { method, path, body: body ? Buffer.from(JSON.stringify(body)) : null, contentType: null };
      const answer = await backend.openenv!.relay(request, signal);
      return [answer.status, JSON.parse(answer.body.toString())];
    };
    expect(await ask('GET', '/list_environments')).toEqual([200, ['env']]);
    expect(await ask('GET', '/Env/splits')).toEqual([200, [expect.objectContaining({ name: 'train' }), expect.anything()]]);
    expect(await ask('POST', '/env/num_tasks', { split: 'train' })).toEqual([200, { num_tasks: 3 }]);
    expect(await ask('POST', '/env/tasks', { split: 'train' })).toEqual([200, { tasks: SPECS, env_name: 'env' }]);
    expect(await ask('POST', '/env/task', { split: 'train', index: '1' })).toEqual([200, { task: SPECS[1] }]);
    expect(await ask('POST', '/env/task_range', { split: 'train', start: 2 })).toEqual([200, { tasks: SPECS.slice(2) }]);
    expect(await ask('POST', '/env/task', { split: 'train', index: 9 })).toEqual([400, { detail: 'Invalid task index' }]);
    expect(await ask('POST', '/env/task', { split: 'train' })).toEqual([400, { detail: 'Invalid task index' }]);
    expect((await ask('POST', '/env/num_tasks', {}))[0]).toBe(422);
    expect((await ask('POST', '/env/num_tasks', { split: 'train', more: 1 }))[0]).toBe(422);
    expect(await ask('GET', '/nope/splits')).toEqual([404, { detail: "unknown environment 'nope'" }]);
    expect(seen).toEqual([]);
  });

  test('is reset with the keywords of the task that a client names; what it says itself wins', async () => {
    const { backend, seen } = world(true);
    const ref = await backend.create(create({ kind: 'none' }), signal);
    const reset = (data: JsonObject) => backend.session(ref).openenv!.exchange({ type: 'reset', data }, null, signal);
    for (const data of [
      { split: 'train', index: 1, seed: 9, episode_id: 'e' },
      { task_id: 'b' },
      { task_id: 'elsewhere' },
      { split: 'train' },
    ])
      await reset(data);
    expect(seen.slice(1)).toEqual(
      [{ id: 'b', seed: 9, episode_id: 'e' }, SPECS[1], { task_id: 'elsewhere' }, { split: 'train' }].map((data) => ({
        type: 'reset',
        data,
      })),
    );
    await expect(reset({ split: 'train', index: 2 })).rejects.toMatchObject({ code: 'invalid_index' });
    await backend.session(ref).openenv!.exchange({ type: 'state' }, null, signal);
    expect(seen.at(-1)).toEqual({ type: 'state' });
  });

  test('takes the same over HTTP, and everything else as it is', async () => {
    const { backend, seen } = world(true);
    const post = (path: string, body: string) =>
      backend.openenv!.relay({ method: 'POST', path, body: Buffer.from(body), contentType: 'application/json' }, signal);
    expect(await post('/reset', '{"split":"train","index":0}')).toMatchObject({ status: 418 });
    expect(await post('/reset', '{"split":"train","index":7}')).toMatchObject({ status: 400 });
    await post('/reset', 'not json');
    await post('/step', '{"action":{"x":1.0}}');
    expect(seen).toEqual([
      ['/reset', '{"id":"a","seed":1}'],
      ['/reset', 'not json'],
      ['/step', '{"action":{"x":1.0}}'],
    ]);
  });
});
