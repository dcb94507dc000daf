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
    expect(view).toMatchObject({ state: 'complete', written: 0, failed: 1, failures: [{ task_index: null, reason: 'Invalid split' }] });
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
