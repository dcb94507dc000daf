import type { JsonObject, Message } from '@palestra/protocol';
import type { Backend, BackendCreate, BackendSession } from '../ports/backend.port.ts';
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

function world() {
  const seen: unknown[] = [];
  let ready = 0;
  const session = {
    ready: async () => void (ready += 1),
    prompt: async () => [{ type: 'text', text: 'own', detail: null }],
    messages: async () => [],
  } as unknown as BackendSession;
  const inner = {
    environments: async () => ['env'],
    create: async (request: BackendCreate) => {
      seen.push(request.task);
      return { number: seen.length };
    },
    session: () => session,
  } as unknown as Backend;
  return { backend: new TaskSetBackend(inner, source), seen, ready: () => ready };
}

const create = (task: BackendCreate['task']): BackendCreate => ({ sid: 's', env: null, task, toolsetName: null, secrets: {} });

describe('tasks', () => {
  test('come from the source, with indexes as in Python', async () => {
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

  test('open episodes by their specification, with their own prompt after setup', async () => {
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
