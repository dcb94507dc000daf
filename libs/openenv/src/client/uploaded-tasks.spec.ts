import { type JsonObject, PalestraError } from '@palestra/protocol';
import { type Backend, type BackendCreate, type BackendSession, TaskSetBackend, type TaskSource } from '@palestra/session';
import { describe, expect, test } from 'vitest';
import type { OpenEnvMessage, OpenEnvUpstream, OpenEnvSession } from '../wire/native.ts';
import { serverWithTasks, sessionWithTasks } from './uploaded-tasks.ts';

const SPECS = [{ id: 'a', seed: 1 }, { id: 'b', seed: 2 }, 'a text'];
const signal = AbortSignal.timeout(60_000);

const source: TaskSource = {
  splits: async () => [
    { name: 'train', type: 'train', num_tasks: 3 },
    { name: 'huge', type: 'validation', num_tasks: 1_000_000 },
  ],
  specs: async (_split, start, stop) => SPECS.slice(start, stop),
  prompt: async () => null,
  find: async () => null,
  async findById(id) {
    if (id === 'away') throw new PalestraError('database_unavailable');
    return id === 'b' ? { split: 'train', index: 1 } : null;
  },
};

/** Uploaded tasks on an OpenEnv server that records what reaches it. */
function serverOfUploadedTasks() {
  const seen: unknown[] = [];
  const native: OpenEnvSession = {
    exchange: async (message: OpenEnvMessage) => {
      seen.push(message);
      return { reply: '{}', result: { text: '', ok: true, reason: null, reward: null, finished: false } };
    },
    state: async () => ({}),
    withTasks: (tasks) => sessionWithTasks(native, tasks),
  };
  const inner = {
    environments: async () => ['env'],
    create: async ({ task }: BackendCreate) => {
      seen.push(task);
      return {};
    },
    session: () => ({ native }) as unknown as BackendSession,
    native: {
      protocol: 'openenv',
      relay: async ({ path, body }: { path: string; body: Buffer | null }) => {
        seen.push([path, body?.toString()]);
        return { status: 418, body: Buffer.from('theirs'), contentType: 'text/plain' };
      },
      withTasks: (tasks) => serverWithTasks(inner.native as OpenEnvUpstream, tasks),
    } as Partial<OpenEnvUpstream>,
  } as unknown as Backend;
  const backend = new TaskSetBackend(inner, source);
  return { backend, server: backend.native as OpenEnvUpstream, seen };
}

const create: BackendCreate = { sid: 's', env: null, task: { kind: 'none' }, toolsetName: null, secrets: {} };

describe('an OpenEnv server with uploaded tasks', () => {
  test('answers the Task API with the uploaded tasks', async () => {
    const { server, seen } = serverOfUploadedTasks();
    const ask = async (method: 'GET' | 'POST', path: string, body?: object) => {
      const request = { method, path, body: body ? Buffer.from(JSON.stringify(body)) : null, contentType: null };
      const answer = await server.relay(request, signal);
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

  test('resets with the keywords of the named task; keywords of the client win', async () => {
    const { backend, seen } = serverOfUploadedTasks();
    const ref = await backend.create(create, signal);
    const reset = (data: JsonObject) => backend.session(ref).native!.exchange({ type: 'reset', data }, null, signal);
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
    // Whether it is a task is unknown: no other one is played in its place.
    await expect(reset({ task_id: 'away' })).rejects.toMatchObject({ code: 'database_unavailable' });
    await backend.session(ref).native!.exchange({ type: 'state' }, null, signal);
    expect(seen.at(-1)).toEqual({ type: 'state' });
  });

  test('resets to a task over HTTP too, and passes other requests through', async () => {
    const { server, seen } = serverOfUploadedTasks();
    const post = (path: string, body: string) =>
      server.relay({ method: 'POST', path, body: Buffer.from(body), contentType: 'application/json' }, signal);
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
