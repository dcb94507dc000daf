import { PalestraApiError, PalestraClient, SessionTerminatedError, ToolCallError } from '@palestra/client';
import type { TaskExportBody } from '@palestra/protocol';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Exports on the server, and the typed client, over the real service with its bundled environments. */
let server: TestServer;
let client: PalestraClient;

beforeAll(async () => {
  server = await sharedServer();
  client = new PalestraClient({ url: server.url, apiKey: server.apiKey });
});
afterAll(async () => {
  await client?.close();
  await server?.close();
});

async function finished(id: string) {
  for (;;) {
    const view = await client.exports.get(id);
    if (view.state !== 'running') return view;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const request: TaskExportBody = {
  environments: ['palestra/echo'],
  split: 'train',
  max_tasks: 20,
  format: 'parquet',
  prompt_format: 'text',
};

describe('POST /v1/exports/tasks', () => {
  test('refuses a body of the wrong shape, a missing key, an unknown environment, an unknown export', async () => {
    expect((await server.request('POST', '/v1/exports/tasks', { body: { environments: [] } })).status).toBe(422);
    expect((await fetch(`${server.url}/v1/exports/tasks`, { method: 'POST' })).status).toBe(401);
    const unknown = await server.request('POST', '/v1/exports/tasks', { body: { ...request, environments: ['no/such'] } });
    expect(unknown).toMatchObject({ status: 404, body: { code: 'deployment_not_found' } });
    expect((await server.request('GET', '/v1/exports/nothing')).body).toMatchObject({ code: 'export_not_found' });
  });

  test('writes a file with the prompt and tools of a session', async () => {
    const view = await finished((await client.exports.create({ ...request })).id);
    expect(view).toMatchObject({ state: 'complete', total: 20, written: 20, failed: 0, failures: [], error: null });
    const pieces: Uint8Array[] = [];
    for await (const piece of await client.exports.download(view.id)) pieces.push(piece);
    const bytes = Buffer.concat(pieces);
    expect(bytes.length).toBe(view.size);
    const rows = await parquetReadObjects({ file: new Uint8Array(bytes).buffer });
    expect(rows.map((row) => Number(row['task_index']))).toEqual([...Array(20).keys()]);
    await using session = await client.session({ environment: 'palestra/echo', split: 'train', index: 7 });
    const [block] = await session.prompt();
    const prompt = JSON.parse(rows[7]!['prompt'] as string) as { content: string }[];
    expect(prompt[1]!.content).toBe(block?.type === 'text' ? block.text : '');
  });

  test('an unknown split is counted as a failure with its reason', async () => {
    const view = await finished((await client.exports.create({ ...request, split: 'nope' })).id);
    expect(view).toMatchObject({
      state: 'complete',
      written: 0,
      failed: 1,
      failures: [{ task_index: null, reason: 'Unknown split "nope". Available: train.' }],
    });
  });
});

describe('rows, filters and order of an export of tasks', () => {
  const math = { environments: ['palestra/math'], format: 'jsonl' as const };
  async function rowsOf(body: TaskExportBody): Promise<Record<string, any>[]> {
    const view = await finished((await client.exports.create(body)).id);
    expect(view).toMatchObject({ state: 'complete', failed: 0 });
    const pieces: Uint8Array[] = [];
    for await (const piece of await client.exports.download(view.id)) pieces.push(piece);
    const rows = Buffer.concat(pieces).toString().split('\n').filter(Boolean);
    expect([view.total, view.written]).toEqual([rows.length, rows.length]);
    return rows.map((line) => JSON.parse(line) as Record<string, any>);
  }
  const indicesOf = async (body: TaskExportBody) => (await rowsOf(body)).map((row) => row['task_index'] as number);

  test.each([
    [{ row_format: 'nemo-gym', format: 'parquet' }, 'JSON lines only'],
    [{ min_reward: 2, max_reward: 1 }, 'min_reward <= max_reward'],
    [{ row_format: 'other' }, 'row_format'],
    [{ exclude: [{ environment: 'math', split: 'test' }] }, 'must be owner/name'],
    [{ exclude_keys: ['abc'] }, 'SHA-256'],
    [{ shuffle_seed: -1 }, 'shuffle_seed'],
    [{ min_rollouts: 0 }, 'min_rollouts'],
  ])('refuses %o', async (body, problem) => {
    const refused = await server.request('POST', '/v1/exports/tasks', { body: { ...request, ...body } });
    expect(refused.status).toBe(422);
    expect(JSON.stringify(refused.body)).toContain(problem);
  });

  test('an unknown environment to exclude is refused, an unknown split to exclude fails the export', async () => {
    const exclude = (environment: string) => ({ ...request, exclude: [{ environment, split: 'nope' }] });
    await expect(client.exports.create(exclude('no/such'))).rejects.toMatchObject({ code: 'deployment_not_found' });
    expect(await finished((await client.exports.create(exclude('palestra/echo'))).id)).toMatchObject({
      state: 'failed',
      error: 'Unknown split "nope". Available: train.',
    });
  });

  test('the facts of a task', async () => {
    const [row] = await rowsOf({ ...math, row_format: 'messages', max_tasks: 1 });
    expect(row!['messages']).toMatchObject([{ role: 'user' }]);
    expect(row!['metadata']).toMatchObject({ env_name: 'palestra/math', env_version: expect.any(Number), split: 'train', task_index: 0 });
    expect(row!['metadata']['task_key']).toMatch(/^[0-9a-f]{64}$/);
  });

  test('a seed shuffles; excluded contents are left out before the maximum applies', async () => {
    const shuffled = await indicesOf({ ...math, row_format: 'trl', max_tasks: 5, shuffle_seed: 3 });
    expect(shuffled).toEqual(await indicesOf({ ...math, row_format: 'trl', max_tasks: 5, shuffle_seed: 3 }));
    expect(Math.max(...shuffled)).toBeGreaterThan(4);
    const first = await rowsOf({ ...math, row_format: 'trl', max_tasks: 2 });
    const exclude_keys = first.map((row) => row['task_key'] as string);
    expect(await indicesOf({ ...math, row_format: 'trl', max_tasks: 2, exclude_keys })).toEqual([2, 3]);
    expect(await indicesOf({ ...math, row_format: 'trl', exclude: [{ environment: 'palestra/math', split: 'train' }] })).toEqual([]);
  });

  test('filters by the mean reward of known rollouts, for keys that may read rollouts', async () => {
    const played = [
      [1, [0, 0]],
      [2, [0, 1]],
      [4, [1]],
      [6, [1, 1]],
    ] as const;
    for (const [index, rewards] of played) {
      for (const [sample, reward] of rewards.entries()) {
        const rollout = await client.rollouts.start({
          runName: 'difficulty-of-tasks',
          rolloutName: `${index}-${sample}`,
          environment: 'palestra/math',
          split: 'train',
          rolloutInfo: { task_index: index },
        });
        await rollout.log({ type: 'assistant_message', content: 'hm', reward, isFinished: true });
      }
    }
    await client.rollouts.flush();
    const filtered = (filter: Partial<TaskExportBody>) => rowsOf({ ...math, row_format: 'trl', ...filter });
    // Uploads are derived in the background, one rollout after the other.
    const counts = async () => (await filtered({ min_rollouts: 1 })).map((row) => row['num_rollouts'] as number);
    await expect.poll(counts).toEqual([2, 2, 1, 2]);
    expect(await filtered({ min_reward: 0.1, max_reward: 0.9 })).toMatchObject([{ task_index: 2, avg_reward: 0.5, num_rollouts: 2 }]);
    expect(await indicesOf({ ...math, row_format: 'trl', min_reward: 0.5, min_rollouts: 2 })).toEqual([2, 6]);
    expect(await filtered({ max_reward: 0 })).toMatchObject([{ task_index: 1 }]);
    const limited = await client.keys.create('sessions only', ['sessions']);
    const other = new PalestraClient({ url: server.url, apiKey: limited.key });
    await expect(other.exports.create({ ...math, min_reward: 0.5 })).rejects.toMatchObject({ status: 403, code: 'scope_missing' });
    await other.close();
  });
});

describe('the client', () => {
  test('an unknown deployment is an API error with its code', async () => {
    const opened = client.session({ environment: 'no/such', split: 'train', index: 0 });
    await expect(opened).rejects.toMatchObject({ name: 'PalestraApiError', code: 'deployment_not_found', status: 404 });
    await expect(opened).rejects.toBeInstanceOf(PalestraApiError);
  });

  test('calls tools, and distinguishes a refused call from a dead session', async () => {
    const session = await client.session({ environment: 'palestra/echo', split: 'train', index: 0 });
    expect(await session.call('echo', { text: 'grüße' })).toMatchObject({ reward: 0.1, finished: false, blocks: [{ text: 'grüße' }] });
    await expect(session.call('nope')).rejects.toMatchObject({ name: 'ToolCallError', reason: 'not_found' });
    await expect(session.call('echo', { text: 1 })).rejects.toBeInstanceOf(ToolCallError);
    expect((await session.taskTools()).tools.map((tool) => tool.name)).toEqual(['echo']);
    await session.close();
    await expect(session.call('echo', { text: 'late' })).rejects.toBeInstanceOf(SessionTerminatedError);
  });
});
