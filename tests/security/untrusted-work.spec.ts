import { brotliCompressSync, gzipSync } from 'node:zlib';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostileEnvironment, hostileSchemas, parquetBombs, toolCallEvents } from './bombs.fixture.ts';
import { sharedServer, type TestServer } from '../support/server.ts';

/** Findings H4 and H5 of the audit: schemas and files of tenants cost the service neither its event loop nor its memory. */

let server: TestServer;
let upstream: RunningServer;

beforeAll(async () => {
  upstream = await serve([hostileEnvironment('hostile')]);
  server = await sharedServer();
  const source = { kind: 'remote', url: upstream.url };
  await server.request('POST', '/v1/environments', { body: { name: 'hostile', isPrivate: true, source } });
});
afterAll(() => upstream?.close());

describe('H4: a hostile schema', () => {
  test.each(Object.entries(hostileSchemas))('%s is given up or answered', async (name, { args, gives }) => {
    const events = toolCallEvents(`${server.orgName}/hostile`, `h4-${name}`, name, args);
    expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
    const answer = await server.request('GET', `/v1/runs/h4-${name}/tools/check?tool=${name}`);
    if (gives === 'answer') expect(answer).toMatchObject({ status: 200, body: { checked: 1, invalid: 1 } });
    else expect(answer).toMatchObject({ status: 422, body: { code: 'too_expensive' } });
  });
});

describe('H5: a hostile file of tasks', () => {
  const upload = async (body: Uint8Array, format: string, headers = {}) => {
    const path = `/v1/environments/${server.orgName}/hostile/task-sets`;
    const set = await server.request('POST', path);
    const answer = await fetch(`${server.url}${path}/${set.body.id}/splits/train?format=${format}`, {
      method: 'PUT',
      headers: { 'x-api-key': server.apiKey, 'content-type': 'application/octet-stream', ...headers },
      body: body as Uint8Array<ArrayBuffer>,
    });
    return { status: answer.status, body: (await answer.json()) as { code: string; detail: string } };
  };

  test.each(Object.keys(parquetBombs))('Parquet: %s', async (name) => {
    const answer = await upload(parquetBombs[name]!(), 'parquet');
    expect(answer.status, JSON.stringify(answer.body)).toBe(422);
    expect(['invalid_task_file', 'too_expensive']).toContain(answer.body.code);
  });

  test.each([
    ['deep', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['wide', `{"a": [${'[],'.repeat(1_000_000)}[]]}`],
    ['long', `{"a": "${'x'.repeat(20_000_000)}"}`],
  ])('JSON lines: %s', async (_, line) => {
    expect(await upload(Buffer.from(`{"a": 1}\n${line}\n`), 'jsonl')).toMatchObject({ status: 422, body: { code: 'invalid_task_file' } });
  });

  test('deep JSON inside of a Parquet column', async () => {
    const deep = `{"a": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const file = parquetWriteBuffer({ columnData: [{ name: 'task_spec', data: [deep] }] });
    expect(await upload(new Uint8Array(file), 'parquet')).toMatchObject({ status: 422, body: { code: 'invalid_task_file' } });
  });

  test('the headers of a request do not decompress a file', async () => {
    const lines = Buffer.from('{"a": 1}\n');
    for (const [encoding, body] of [
      ['gzip', gzipSync(lines)],
      ['br', brotliCompressSync(lines)],
    ] as const)
      expect(await upload(body, 'jsonl', { 'content-encoding': encoding })).toMatchObject({
        status: 422,
        body: { code: 'invalid_task_file' },
      });
  });
});

test('H5: a trace of millions of empty messages is refused', async () => {
  // Two bytes each: ResourceSpans without anything.
  const body = Buffer.alloc(8_000_000, Buffer.from([0x0a, 0x00]));
  const headers = { 'x-api-key': server.apiKey, 'content-type': 'application/x-protobuf' };
  const answer = await fetch(`${server.url}/v1/traces`, { method: 'POST', headers, body });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain('messages');
});

test('H4: a regular expression with excessive repetitions is refused', async () => {
  for (const regex of ['a{1000}'.repeat(20), '((a?){40}){40}']) {
    const query = `name:/${regex}/`;
    const answer = await server.request('POST', '/v1/exports', { body: { query } });
    expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_query' } });
  }
});
