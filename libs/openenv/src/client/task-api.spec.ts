import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { OpenEnvConnection } from './connection.ts';
import { TaskApi } from './task-api.ts';

/** Environments that implement a part of the Task API. Complete ones are in tests/conformance. */
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
    const answer = implemented[route]?.(JSON.parse(body || '{}')) ?? 501;
    // A number is a status.
    response.writeHead(typeof answer === 'number' ? answer : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(typeof answer === 'number' ? { detail: `${route} answers ${answer}` } : answer));
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
  test('derives the type of a split from its name', async () => {
    const { api } = await serve({ splits });
    expect(await api.splits()).toEqual([
      { name: 'train', type: 'train' },
      { name: 'hard', type: 'validation' },
      { name: 'mine', type: 'test' },
    ]);
  });

  test('derives counts, tasks and ranges from a list', async () => {
    const { api, asked } = await serve({ splits, tasks: () => ({ tasks: TASKS }) });
    expect(await api.count('train')).toBe(3);
    expect(await api.task('train', -1, soon())).toEqual({ id: 'c' });
    expect(await api.range('train', 1, null, soon())).toEqual([{ id: 'b' }, { id: 'c' }]);
    expect(await api.range('train', 5, null, soon())).toEqual([]);
    await expect(api.task('train', 3, soon())).rejects.toMatchObject({ code: 'invalid_index' });
    await expect(api.task('other', 0, soon())).rejects.toMatchObject({ code: 'invalid_split' });
    // Shared answers are requested once.
    expect(asked.filter((route) => route === 'splits')).toHaveLength(1);
    expect(asked.filter((route) => route === 'num_tasks')).toHaveLength(1);
  });

  test('reads tasks by index if they cannot be listed', async () => {
    const { api } = await serve({ splits, num_tasks: () => ({ num_tasks: 3 }), task: ({ index }) => ({ task: TASKS[index] }) });
    expect(await api.count('train')).toBe(3);
    expect(await api.task('train', 1, soon())).toEqual({ id: 'b' });
    await expect(api.tasks('train', soon())).rejects.toMatchObject({ code: 'tasks_not_listable' });
    expect(await api.positionOf({ id: 'b' })).toBeNull();
  });

  test('finds the position of a listed task for any order of keys', async () => {
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

  test.each([502, 503, 504])('blames no environment for a proxy that answers %i', async (status) => {
    const { api } = await serve({ splits, num_tasks: () => status });
    await expect(api.count('train')).rejects.toMatchObject({ code: 'backend_unreachable' });
  });

  test('reports an invalid answer and does not cache it', async () => {
    let good = false;
    const { api } = await serve({ splits: () => (good ? splits() : { no: 'list' }) });
    await expect(api.splits()).rejects.toMatchObject({ code: 'backend_invalid' });
    good = true;
    expect(await api.splits()).toHaveLength(3);
  });
});
