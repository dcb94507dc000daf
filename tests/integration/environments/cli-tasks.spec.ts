import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { echo } from '../../../apps/environments/src/echo/echo.environment.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** `palestra tasks` as it is built, on a real server. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
let upstream: RunningServer;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-cli-tasks-'));
  upstream = await serve([echo]);
  server = await sharedServer();
  const source = { kind: 'remote', url: upstream.url };
  await server.request('POST', '/v1/environments', { body: { name: 'echo', source } });
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
  await rm(folder, { recursive: true, force: true });
});

async function palestra(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { ...process.env, PALESTRA_URL: server.url, PALESTRA_API_KEY: server.apiKey };
  return promisify(execFile)(process.execPath, [CLI, ...args], { env, cwd: folder }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}
const file = (name: string, content: string | Uint8Array) => writeFile(path.join(folder, name), content);
const environment = () => `${server.orgName}/echo`;

test('errors of the command line are reported before anything is sent', async () => {
  await file('train.jsonl', '{"id":1}\n');
  const mistakes = [
    [],
    ['nowhere.jsonl'],
    ['train.csv'],
    ['train.jsonl', '--split', 'train=train.jsonl'],
    ['train.jsonl', '--type', 'test=test'],
  ];
  for (const args of [...mistakes, ['train.jsonl', '--type', 'train=exam'], ['.'], ['--split', 'train']])
    expect(await palestra('tasks', 'push', environment(), ...args), args.join(' ')).toMatchObject({ code: 2, stdout: '' });
  expect((await server.request('GET', `/v1/environments/${environment()}/task-sets`)).body.task_sets).toEqual([]);
});

test('a bad row is reported with its line, and no draft remains', async () => {
  await file('train.jsonl', '{"id":1}\n{"id":\n');
  const failed = await palestra('tasks', 'push', environment(), 'train.jsonl');
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toMatch(/^palestra: train\.jsonl, line 2: not JSON/);
  expect((await server.request('GET', `/v1/environments/${environment()}/task-sets`)).body.task_sets).toEqual([]);
});

test('files become the splits of a new version, once', async () => {
  await file('train.jsonl', '{"id":1}\n{"id":2}\n');
  const parquet = parquetWriteBuffer({ columnData: [{ name: 'id', data: [3], type: 'INT32' }] });
  await file('test-00000-of-00001.parquet', new Uint8Array(parquet));
  await file('more.jsonl', '{"id":4,"prompt":"Say it."}\n');
  const args = ['train.jsonl', 'test-00000-of-00001.parquet', '--split', 'hard=more.jsonl', '--type', 'hard=test'];
  const pushed = await palestra('tasks', 'push', environment(), ...args);
  expect(pushed).toMatchObject({ code: 0 });
  expect(pushed.stdout).toContain(`${environment()}@2\n`);
  expect((await palestra('tasks', 'push', environment(), ...args)).stdout).toContain(`${environment()}@2: already has these tasks`);
  expect((await palestra('tasks', 'list', environment())).stdout).toContain('train (2), test (1), hard (1)');
  expect((await palestra('env', 'tasks', environment(), '--split', 'test')).stdout).toBe('index  task_spec\n0      {"id":3}\n');
  expect((await palestra('env', 'tasks', environment(), '--split', 'test', '-o', 'jsonl')).stdout).toContain('"task_spec":{"id":3}');
  expect((await palestra('tasks', 'push', environment(), 'more.jsonl', '--split', 'train')).stdout).toContain(`${environment()}@3\n`);
  expect((await palestra('tasks', 'list', environment())).stdout).toContain('train (1)');
  expect((await palestra('tasks', 'push', environment(), ...args)).stdout).toContain(`${environment()}@4\n`);
  const { splits } = (await server.request('GET', `/v1/environments/${environment()}/discovery`)).body.variants[0];
  expect(splits).toMatchObject([{ type: 'train' }, { type: 'test' }, { name: 'hard', type: 'test', num_tasks: 1 }]);
});

test('an environment of the own namespace needs no owner', async () => {
  await file('train.jsonl', '{"id":7}\n');
  const pushed = await palestra('tasks', 'push', 'echo', 'train.jsonl');
  expect(pushed).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`^${environment()}@\\d+\\n`, 'm')) });
  expect((await palestra('tasks', 'list', 'echo')).stdout).toContain('train (1)');
  expect((await palestra('env', 'get', 'echo')).stdout).toContain(`${environment()} (private`);
  expect(await palestra('env', 'set', 'echo', '--capacity', '3')).toMatchObject({ code: 0, stdout: '{"capacity":3}\n' });
  for (const name of ['', '/echo', 'echo/', 'a/b/c']) expect(await palestra('env', 'get', name), name).toMatchObject({ code: 2 });
});
