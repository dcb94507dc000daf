import { randomUUID } from 'node:crypto';
import { defineEnvironment, type RunningServer, serve, tool } from '@palestra/environment-kit';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoredTaskSource } from '../../../apps/api/src/environments/task-sets/stored-task-source.ts';
import { Database } from '../../../apps/api/src/platform/database/database.ts';
import { startCuttingProxy } from '../../support/cutting-proxy.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { createCaller } from '../../support/callers.ts';

/** Tasks that are uploaded for an environment, as JSONL and Parquet: refused as a whole, published as a whole, played. */
let server: TestServer;
let upstream: RunningServer;
let stranger: Awaited<ReturnType<typeof createCaller>>;
let base: string;

/** Knows one task of its own, and plays any other. */
const sums = defineEnvironment<{ a: number; b: number }>({
  name: 'sums',
  splits: ['own'],
  tasks: () => [{ a: 1, b: 1 }],
  prompt: ({ task }) => `What is ${task.a} + ${task.b}?`,
  tools: {
    spec: tool({ description: 'The task.', run: (_input, { task }) => JSON.stringify(task) }),
  },
});

beforeAll(async () => {
  upstream = await serve([sums]);
  server = await sharedServer();
  stranger = await createCaller(server, 'strangers');
  base = await environment('sums');
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

async function environment(name: string, isPrivate = false): Promise<string> {
  const source = { kind: 'remote', url: upstream.url };
  expect(await server.request('POST', '/v1/environments', { body: { name, isPrivate, source } })).toMatchObject({ status: 200 });
  return `/v1/environments/${server.orgName}/${name}`;
}

test('tasks are read again while PostgreSQL is away for a moment', async () => {
  const target = new URL(server.config.databaseUrl!);
  const network = await startCuttingProxy(Number(target.port));
  target.port = String(network.port);
  const database = new Database(target.href, 1);
  const accept = network.refuse();
  const found = new StoredTaskSource(database, randomUUID()).findById('any');
  setTimeout(accept, 300);
  await expect(found).resolves.toBeNull();
  await database.close();
  await network.close();
});

const draft = async (of = base): Promise<string> => `${of}/task-sets/${(await server.request('POST', `${of}/task-sets`)).body.id}`;

async function put(set: string, split: string, body: string | Uint8Array<ArrayBuffer>, query = '', headers = {}) {
  const answer = await fetch(`${server.url}${set}/splits/${split}${query}`, {
    method: 'PUT',
    headers: { 'x-api-key': server.apiKey, 'content-type': 'application/octet-stream', ...headers },
    body,
  });
  return { status: answer.status, body: (await answer.json()) as any };
}

async function push(of: string, files: Record<string, string | Uint8Array<ArrayBuffer>>, query = '') {
  const set = await draft(of);
  for (const [split, file] of Object.entries(files)) expect(await put(set, split, file, query)).toMatchObject({ status: 200 });
  return server.request('POST', `${set}/publish`);
}

const lines = (...rows: unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const of = (deployment: string) => ({ 'x-deployment': deployment });

describe('a file with a mistake', () => {
  const refused = async (body: string | Uint8Array<ArrayBuffer>, query = '?file=train.jsonl') => {
    const set = await draft();
    expect(await put(set, 'train', lines({ a: 1 }))).toMatchObject({ status: 200 });
    const answer = await put(set, 'train', body, query);
    expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_task_file' } });
    const { body: list } = await server.request('GET', `${base}/task-sets`);
    const kept = list.task_sets.find(({ id }: { id: string }) => set.endsWith(id));
    // What was in its place stays.
    expect(kept.splits).toMatchObject([{ name: 'train', num_tasks: 1 }]);
    return answer.body.detail as string;
  };

  test('is refused with its line and the reason, and nothing of it is stored', async () => {
    expect(await refused(`${lines({ a: 1 })}{"a": 2,}\n`)).toMatch(/^train\.jsonl, line 2: not JSON .*Nothing was stored/);
    expect(await refused(`${lines({ a: 1 })}\n[1]\n`)).toContain('line 3: expected a JSON object, got a list');
    expect(await refused(`{"a": ${'1'.repeat(400)}}\n7\n`)).toContain('line 2: expected a JSON object');
    expect(await refused(lines({ task_spec: null }))).toContain('line 1: task_spec is null');
    expect(await refused(lines({ a: 1, prompt: [{ role: 'robot', content: 'x' }] }))).toContain('line 1: prompt: ');
    expect(
      await refused(lines({ a: 1, prompt: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x' } }] }] })),
    ).toContain('base64 data URL');
    expect(await refused(lines({ id: {} }))).toContain('line 1: id must be');
    expect(await refused(lines({ id: 'x' }, { id: 'y' }, { id: 'x' }))).toContain('line 3: the id "x" is repeated');
    expect(await refused(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))).toContain('line 1: not UTF-8');
    expect(await refused('\n\n')).toContain('it has no tasks');
    expect(await refused('PAR1', '?format=parquet&file=a.parquet')).toMatch(/^a\.parquet: not a Parquet file/);
  });

  test('of Parquet, with its row', async () => {
    const columns = [{ name: 'task_spec', data: ['{"a":1}', '{"a":'] }];
    expect(await refused(new Uint8Array(parquetWriteBuffer({ columnData: columns })), '?format=parquet&file=a.parquet')).toMatch(
      /^a\.parquet, row 2: /,
    );
  });
});

describe('a draft', () => {
  test('belongs to its owners: others do not find it, or may not change it', async () => {
    const hidden = await environment('hidden', true);
    const set = await draft(hidden);
    const id = set.split('/').at(-1)!;
    const theirs = { headers: stranger.headers };
    expect(await server.request('GET', `${hidden}/task-sets`, theirs)).toMatchObject({ status: 404 });
    expect(await server.request('POST', `${hidden}/task-sets`, theirs)).toMatchObject({ status: 404 });
    expect(await put(set, 'train', lines({ a: 1 }), '', stranger.headers)).toMatchObject({ status: 404 });
    expect(await server.request('POST', `${set}/publish`, theirs)).toMatchObject({ status: 404 });
    expect(await server.request('DELETE', set, theirs)).toMatchObject({ status: 404 });
    expect(await server.request('POST', `${base}/task-sets`, theirs)).toMatchObject({ status: 403 });
    expect((await server.request('GET', `${base}/task-sets`, theirs)).body).toEqual({ task_sets: [] });
    // Not by way of an environment of one's own, either.
    expect(await put(`${base}/task-sets/${id}`, 'train', lines({ a: 1 }))).toMatchObject({
      status: 404,
      body: { code: 'task_set_not_found' },
    });
  });

  test('needs a split for publishing and a server for its creation, and can be deleted', async () => {
    const set = await draft();
    expect(await server.request('POST', `${set}/publish`)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect(await server.request('DELETE', set)).toMatchObject({ status: 200, body: { deleted: true } });
    expect(await put(set, 'train', lines({ a: 1 }))).toMatchObject({ status: 404 });
    await server.request('POST', '/v1/environments', { body: { name: 'bare' } });
    const begun = await server.request('POST', `/v1/environments/${server.orgName}/bare/task-sets`);
    expect(begun).toMatchObject({ status: 404, body: { code: 'deployment_not_found' } });
  });
});

test('uploaded tasks are the tasks of a new version, in the order of the file, with unchanged numbers', async () => {
  const rows = '{"b":1.0,"a":2}\n{"b":9007199254740993,"a":1e400}\n{"b":3,"a":4}\n';
  const published = await push(base, { train: rows, 'hard cases': lines({ a: 7, b: 8 }) });
  expect(published).toMatchObject({ status: 200, body: { created: true, version: 2, task_set: { state: 'published', versions: [2] } } });
  const headers = of(`${server.orgName}/sums`);
  expect((await server.request('GET', '/splits', { headers })).body).toEqual([
    { name: 'train', type: 'train' },
    { name: 'hard cases', type: 'validation' },
  ]);
  expect((await server.request('POST', '/num_tasks', { headers, body: { split: 'train' } })).body.num_tasks).toBe(3);
  const answer = await fetch(`${server.url}/tasks`, {
    method: 'POST',
    headers: { 'x-api-key': server.apiKey, 'content-type': 'application/json', ...headers },
    body: '{"split":"train"}',
  });
  expect(await answer.text()).toContain('[{"b":1.0,"a":2},{"b":9007199254740993,"a":1e400},{"b":3,"a":4}]');
  const range = (body: object) => server.request('POST', '/task_range', { headers, body: { split: 'train', ...body } });
  expect((await range({ start: -1 })).body.tasks).toEqual([{ b: 3, a: 4 }]);
  expect((await range({ start: 1, stop: -1 })).body.tasks).toHaveLength(1);
  expect((await server.request('POST', '/task', { headers, body: { split: 'train', index: 3 } })).body.code).toBe('invalid_index');
  expect((await server.request('POST', '/num_tasks', { headers, body: { split: 'own' } })).body.code).toBe('invalid_split');
  // Its first version still has the task of its server.
  const first = { headers: of(`${server.orgName}/sums@1`) };
  expect((await server.request('GET', '/splits', first)).body).toEqual([{ name: 'own', type: 'validation' }]);
  // The pages of tasks and versions.
  expect((await server.request('GET', `${base}/tasks?split=train&start=2`)).body).toMatchObject({
    total: 3,
    tasks: [{ index: 2, task_spec: { a: 4 } }],
  });
  const { versions } = (await server.request('GET', `${base}/versions`)).body;
  expect(versions).toMatchObject([
    { number: 2, num_tasks: 4, task_set: published.body.task_set.id },
    { number: 1, num_tasks: 1, task_set: null },
  ]);
  expect((await server.request('GET', `${base}/discovery`)).body.variants[0].splits).toMatchObject([{ num_tasks: 3 }, { num_tasks: 1 }]);
});

test('a session plays the uploaded task, by index and by specification, with its prompt', async () => {
  const of1 = await environment('prompted');
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'Two and two?' }] },
  ];
  const file = lines(
    { task_spec: { a: 5, b: 6 }, id: 'first', env_class: 'x' },
    { task_spec: { b: 2.5, a: 2 }, prompt: 'Add them up.', id: 2 },
    { a: 2, b: 2, prompt: messages },
  );
  const set = await draft(of1);
  expect(await put(set, 'test', file)).toMatchObject({ status: 200, body: { num_tasks: 3, type: 'test', ignored_columns: ['env_class'] } });
  expect(await server.request('POST', `${set}/publish`)).toMatchObject({ status: 200 });
  const environmentName = `${server.orgName}/prompted`;
  const played = async (task: object) => {
    const opened = await server.request('POST', '/create_session', { headers: of(environmentName), body: {} });
    const sid = /data: ([\w-]+)/.exec(String(opened.body))![1]!;
    const headers = { ...of(environmentName), 'x-session-id': sid };
    expect(await server.request('POST', '/create', { headers, body: task })).toMatchObject({ status: 200 });
    const prompt = await server.request('GET', '/sums/prompt', { headers });
    const told = await server.request('GET', '/sums/messages', { headers });
    const called = await server.request('POST', '/sums/call', { headers, body: { name: 'spec', input: {} } });
    await server.request('POST', '/delete', { headers });
    return { prompt: prompt.body, messages: told.body, spec: String(called.body) };
  };
  const [plain, text, conversation] = await Promise.all([0, 1, 2].map((index) => played({ split: 'test', index })));
  expect(plain!.prompt).toMatchObject([{ type: 'text', text: 'What is 5 + 6?' }]);
  expect(text!.prompt).toMatchObject([{ type: 'text', text: 'Add them up.' }]);
  expect(text!.spec).toContain('2.5');
  expect(conversation!.prompt).toMatchObject([{ text: 'Be brief.' }, { text: 'Two and two?' }]);
  expect(JSON.stringify(conversation!.messages)).toContain('"role":"system"');
  // A client that read the task and sends it back, its keys in another order.
  expect((await played({ task_spec: { a: 2, b: 2.5 } })).prompt).toMatchObject([{ text: 'Add them up.' }]);
  expect((await played({ task_spec: { a: 3, b: 4 } })).prompt).toMatchObject([{ text: 'What is 3 + 4?' }]);
});

test('repeated content gives the same version, other content a new one, and earlier content can be restored', async () => {
  const of1 = await environment('again');
  const first = await push(of1, { train: '{"a":1,"b":2}\n', test: '{"a":3,"b":4}\n' });
  expect(first.body).toMatchObject({ created: true, version: 2 });
  // Another order of keys and files, other white space.
  const same = await push(of1, { test: '{"b":4,"a":3}', train: '\n{ "b": 2, "a": 1 }\n\n' });
  expect(same.body).toMatchObject({ created: false, version: 2, task_set: { id: first.body.task_set.id } });
  // 1.0 is another number than 1 to Python.
  const other = await push(of1, { train: '{"a":1.0,"b":2}\n', test: '{"a":3,"b":4}\n' });
  expect(other.body).toMatchObject({ created: true, version: 3 });
  expect(other.body.task_set.content_hash).not.toBe(first.body.task_set.content_hash);
  const back = await push(of1, { train: '{"a":1,"b":2}\n', test: '{"a":3,"b":4}\n' });
  expect(back.body).toMatchObject({ created: true, version: 4, task_set: { id: first.body.task_set.id, versions: [2, 4] } });
  const set = `${of1}/task-sets/${first.body.task_set.id}`;
  expect(await put(set, 'train', lines({ a: 1 }))).toMatchObject({ status: 409, body: { code: 'task_set_published' } });
  expect(await server.request('DELETE', set)).toMatchObject({ status: 409, body: { code: 'task_set_in_use' } });
  // A version on another server has the same tasks, unless it is told otherwise.
  const source = { kind: 'remote', url: upstream.url };
  const splitsOf = async () => (await server.request('GET', `${of1}/discovery`)).body.variants[0].splits.map(({ name }: any) => name);
  expect(await server.request('POST', `${of1}/versions`, { body: { source } })).toMatchObject({ status: 200 });
  expect(await splitsOf()).toEqual(['train', 'test']);
  expect(await server.request('POST', `${of1}/versions`, { body: { source, task_set: null } })).toMatchObject({ status: 200 });
  expect(await splitsOf()).toEqual(['own']);
  expect(await server.request('DELETE', of1)).toMatchObject({ status: 200 });
  expect(await server.database.prisma.taskSet.count({ where: { id: first.body.task_set.id } })).toBe(0);
});

test('Parquet: 64-bit integers, floats, lists, structs and JSON columns arrive as they are', async () => {
  const of1 = await environment('columns');
  const file = new Uint8Array(
    parquetWriteBuffer({
      columnData: [
        { name: 'big', data: [9007199254740993n, 2n], type: 'INT64' },
        { name: 'float', data: [1, 0.5], type: 'DOUBLE' },
        { name: 'nested', data: [{ x: [1, 2] }, null], type: 'JSON' },
        { name: 'prompt', data: ['one', null], type: 'STRING' },
      ],
    }),
  );
  expect((await push(of1, { train: file }, '?format=parquet')).body).toMatchObject({ created: true });
  const answer = await fetch(`${server.url}${of1}/tasks?split=train`, { headers: { 'x-api-key': server.apiKey } });
  const text = await answer.text();
  expect(text).toContain('{"big":9007199254740993,"float":1.0,"nested":{"x":[1,2]},"prompt":"one"}');
  expect(text).toContain('{"big":2,"float":0.5,"nested":null,"prompt":null}');
});

test('Parquet: decimals and times keep their digits', async () => {
  const of1 = await environment('digits');
  const file = new Uint8Array(
    parquetWriteBuffer({
      columnData: [
        { name: 'price', data: [435n, null] },
        { name: 'wide', data: [12_345_678_901_234_567_890n, -1n] },
        { name: 'day', data: [new Date('2024-02-29'), null] },
      ],
      schema: [
        { name: 'root', num_children: 3 },
        { name: 'price', type: 'INT32', converted_type: 'DECIMAL', precision: 4, scale: 2, repetition_type: 'OPTIONAL' },
        {
          name: 'wide',
          type: 'FIXED_LEN_BYTE_ARRAY',
          type_length: 16,
          converted_type: 'DECIMAL',
          precision: 30,
          scale: 2,
          repetition_type: 'REQUIRED',
        },
        { name: 'day', type: 'INT32', converted_type: 'DATE', repetition_type: 'OPTIONAL' },
      ],
    }),
  );
  expect((await push(of1, { train: file }, '?format=parquet')).body).toMatchObject({ created: true });
  const answer = await fetch(`${server.url}${of1}/tasks?split=train`, { headers: { 'x-api-key': server.apiKey } });
  const text = await answer.text();
  expect(text).toContain('{"price":4.35,"wide":123456789012345678.9,"day":"2024-02-29"}');
  expect(text).toContain('{"price":null,"wide":-0.01,"day":null}');
});
