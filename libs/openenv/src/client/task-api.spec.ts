import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { OpenEnvConnection } from './connection.ts';
import { TaskApi } from './task-api.ts';

/** Environments that implement a part of the Task API only. Whole ones are in tests/conformance. */
let stop: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of stop) await end();
  stop = [];
});

const soon = () => AbortSignal.timeout(25_000);
const TASKS = [{ id: 'a', weight: 1 }, { id: 'b' }, { id: 'c' }];

async function serve(implemented: Record<string, (body: { split: string; index: number; start: number; stop: number }) => unknown>) {
  const asked: string[] = [];
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const route = request.url!.slice('/some/'.length);
    asked.push(route);
    const answer = implemented[route];
    response.writeHead(answer ? 200 : 501, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ? answer(JSON.parse(body || '{}')) : { detail: `${route} is not supported for this environment` }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = new OpenEnvConnection(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  stop.push(async () => {
    await connection.close();
    server.close();
  });
  return { api: new TaskApi(connection, 'some'), asked };
}

const splits = () => ['train', { name: 'hard', type: 'odd' }, { name: 'mine', type: 'test' }];

describe('the Task API', () => {
  test('bare and odd splits have a type', async () => {
    const { api } = await serve({ splits });
    expect(await api.splits()).toEqual([
      { name: 'train', type: 'train' },
      { name: 'hard', type: 'validation' },
      { name: 'mine', type: 'test' },
    ]);
  });

  test('a list alone gives counts, tasks and ranges', async () => {
    const { api, asked } = await serve({ splits, tasks: () => ({ tasks: TASKS }) });
    expect(await api.count('train')).toBe(3);
    expect(await api.task('train', -1, soon())).toEqual({ id: 'c' });
    expect(await api.range('train', 1, null, soon())).toEqual([{ id: 'b' }, { id: 'c' }]);
    expect(await api.range('train', 5, null, soon())).toEqual([]);
    await expect(api.task('train', 3, soon())).rejects.toMatchObject({ code: 'invalid_index' });
    await expect(api.task('other', 0, soon())).rejects.toMatchObject({ code: 'invalid_split' });
    // What every session needs is asked once, whoever asks.
    expect(asked.filter((route) => route === 'splits')).toHaveLength(1);
    expect(asked.filter((route) => route === 'num_tasks')).toHaveLength(1);
  });

  test('the index alone gives tasks, and says that it cannot list', async () => {
    const { api } = await serve({ splits, num_tasks: () => ({ num_tasks: 3 }), task: ({ index }) => ({ task: TASKS[index] }) });
    expect(await api.count('train')).toBe(3);
    expect(await api.task('train', 1, soon())).toEqual({ id: 'b' });
    await expect(api.tasks('train', soon())).rejects.toMatchObject({ code: 'tasks_not_listable' });
    expect(await api.positionOf({ id: 'b' })).toBeNull();
  });

  test('a task that comes back finds its place, whatever the order of its keys', async () => {
    const { api, asked } = await serve({
      splits,
      num_tasks: ({ split }) => ({ num_tasks: split === 'mine' ? 3 : 0 }),
      task_range: ({ start, stop: end }) => ({ tasks: TASKS.slice(start, end) }),
    });
    expect(await api.positionOf({ weight: 1, id: 'a' })).toEqual({ split: 'mine', index: 0 });
    expect(await api.positionOf({ id: 'c' })).toEqual({ split: 'mine', index: 2 });
    expect(await api.positionOf({ id: 'z' })).toBeNull();
    expect(asked.filter((route) => route === 'task_range')).toHaveLength(1);
  });

  test('an answer that is none is named as such, and asked for again', async () => {
    let good = false;
    const { api } = await serve({ splits: () => (good ? splits() : { no: 'list' }) });
    await expect(api.splits()).rejects.toMatchObject({ code: 'backend_invalid' });
    good = true;
    expect(await api.splits()).toHaveLength(3);
  });
});
