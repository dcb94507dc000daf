import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { freePort } from '@palestra/hosting';
import { VERSION } from '@palestra/protocol/version';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CheckResult } from '../../../apps/cli/src/doctor/check.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** `palestra doctor` as it is built. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-doctor-'));
  server = await sharedServer();
});
afterAll(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

async function doctor(extra: NodeJS.ProcessEnv = {}, args: string[] = ['-o', 'json']) {
  const settings = { PALESTRA_URL: server.url, PALESTRA_API_KEY: server.apiKey, PALESTRA_DATA_DIR: folder, NO_COLOR: '1' };
  // Variables of the machine that runs the tests are no part of them.
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [CLI, 'doctor', ...args], { env: { PATH, HOME, ...settings, ...extra }, cwd: folder });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}
/** The results by the names of the checks. */
async function results(extra: NodeJS.ProcessEnv = {}): Promise<{ code: number | null; checks: Record<string, CheckResult> }> {
  const { code, stdout } = await doctor(extra);
  const found = JSON.parse(stdout) as CheckResult[];
  return { code, checks: Object.fromEntries(found.map((one) => [one.check, one])) };
}

test('a healthy server: every check in one line, and advice for what could be better', async () => {
  const { code, checks } = await results();
  expect(Object.keys(checks)).toEqual([
    'node',
    'disk',
    'server',
    'versions',
    'key',
    'clock',
    'isolation',
    'postgresql',
    's3',
    'containers',
  ]);
  expect(Object.values(checks).filter(({ status }) => status === 'fail')).toEqual([]);
  expect(code).toBe(0);
  expect(checks['server']).toEqual({ check: 'server', status: 'ok', detail: `${server.url} is ready.`, advice: null });
  expect(checks['versions']!.detail).toContain(VERSION);
  expect(checks['key']!.detail).toContain(`of ${server.orgName}`);
  expect(checks['clock']!.status).toBe('ok');
  expect(checks['isolation']!.detail).toMatch(/Isolation: (?:namespace|process)/);
  for (const { status, advice, check } of Object.values(checks)) if (status === 'ok') expect(advice, check).toBeNull();
  expect((await doctor({}, [])).stdout).toMatch(/^ok {4}node {8}Node\.js \d+[^\n]*\nok {4}disk /);
});

test('without a server it says how to start one, and checks the rest', async () => {
  const { code, checks } = await results({ PALESTRA_URL: `http://127.0.0.1:${await freePort()}` });
  expect(code).toBe(5);
  expect(checks['server']).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('ECONNREFUSED'),
    advice: expect.stringContaining('palestra up'),
  });
  expect(checks['key']).toMatchObject({ status: 'warn', detail: 'Not checked: the server does not answer.' });
  expect(checks['node']!.status).toBe('ok');
});

test('a server that never answers is a failed check, not a hang', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { checks } = await results({ PALESTRA_URL: `http://127.0.0.1:${(silent.address() as { port: number }).port}` });
  silent.close();
  expect(checks['server']).toMatchObject({ status: 'fail', advice: expect.stringContaining('PALESTRA_URL') });
});

test.each([
  ['no key', '', /No API key is set/],
  ['a wrong key', 'or_wrong', /refuses the key/],
])('%s fails with advice', async (_, key, detail) => {
  const { code, checks } = await results({ PALESTRA_API_KEY: key });
  expect(code).toBe(5);
  expect(checks['key']).toMatchObject({
    status: 'fail',
    detail: expect.stringMatching(detail),
    advice: expect.stringContaining('PALESTRA_API_KEY'),
  });
});

test('PostgreSQL: its settings are judged; one that is down, or refuses the password, fails with advice', async () => {
  const url = server.config.databaseUrl!;
  // The one of the tests forgets what a crash of the machine loses.
  expect((await results({ DATABASE_URL: url })).checks['postgresql']).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('fsync'),
  });
  const down = new URL(url);
  down.port = String(await freePort());
  const refused = { status: 'fail', advice: expect.stringContaining('DATABASE_URL') };
  expect((await results({ DATABASE_URL: down.href })).checks['postgresql']).toMatchObject({
    ...refused,
    detail: expect.stringContaining('ECONNREFUSED'),
  });
  const stranger = new URL(url);
  stranger.password = 'wrong';
  expect((await results({ DATABASE_URL: stranger.href })).checks['postgresql']).toMatchObject({
    ...refused,
    detail: expect.stringContaining('password'),
  });
  expect((await results({ DATABASE_URL: 'not a url' })).checks['postgresql']!.status).toBe('fail');
});

test('the embedded PostgreSQL of a data directory is found, running or not', async () => {
  expect((await results()).checks['postgresql']).toMatchObject({ status: 'ok', detail: expect.stringContaining('first start') });
  const data = path.join(folder, 'data');
  await mkdir(path.join(data, 'postgres/data'), { recursive: true });
  await writeFile(path.join(data, 'postgres/password'), 'secret-of-postgres');
  expect((await results({ PALESTRA_DATA_DIR: data })).checks['postgresql']).toMatchObject({
    status: 'warn',
    advice: expect.stringContaining('palestra up'),
  });
  await writeFile(path.join(data, 'postgres/data/postmaster.pid'), `1\n${data}\n0\n${await freePort()}\n`);
  const stale = await results({ PALESTRA_DATA_DIR: data });
  expect(stale.checks['postgresql']).toMatchObject({ status: 'fail', detail: expect.stringContaining('ECONNREFUSED') });
  expect(JSON.stringify(stale)).not.toContain('secret-of-postgres');
});

test('S3: an incomplete or unreachable configuration fails with advice, without the secret', async () => {
  expect((await results()).checks['s3']).toMatchObject({ status: 'ok', detail: expect.stringContaining('Not configured') });
  expect((await results({ S3_ENDPOINT: 'http://127.0.0.1:1' })).checks['s3']).toMatchObject({
    status: 'fail',
    advice: expect.stringContaining('S3_BUCKET'),
  });
  // Nothing listens on this port. Its number was once taken for the status 403.
  const S3_ENDPOINT = 'http://127.0.0.1:403';
  const found = await results({ S3_ENDPOINT, S3_BUCKET: 'palestra', S3_ACCESS_KEY_ID: 'id', S3_SECRET_ACCESS_KEY: 'the-secret' });
  expect(found.checks['s3']).toMatchObject({ status: 'fail', advice: expect.stringContaining('S3_ENDPOINT') });
  expect(JSON.stringify(found)).not.toContain('the-secret');
});

test.runIf(process.env['PALESTRA_TEST_S3_ENDPOINT'])(
  'S3: a real server is written to, read and cleaned up; wrong names and keys are told apart',
  async () => {
    const env = process.env;
    const S3 = {
      S3_ENDPOINT: env['PALESTRA_TEST_S3_ENDPOINT'],
      S3_REGION: env['PALESTRA_TEST_S3_REGION'],
      S3_ACCESS_KEY_ID: env['PALESTRA_TEST_S3_ACCESS_KEY'],
      S3_SECRET_ACCESS_KEY: env['PALESTRA_TEST_S3_SECRET_KEY'],
    };
    const { S3Client, CreateBucketCommand, ListObjectsV2Command } = await import('@aws-sdk/client-s3');
    const credentials = { accessKeyId: S3.S3_ACCESS_KEY_ID!, secretAccessKey: S3.S3_SECRET_ACCESS_KEY! };
    const client = new S3Client({ endpoint: S3.S3_ENDPOINT!, region: S3.S3_REGION!, forcePathStyle: true, credentials });
    const Bucket = `doctor-${process.pid}`;
    await client.send(new CreateBucketCommand({ Bucket }));
    expect((await results({ ...S3, S3_BUCKET: Bucket })).checks['s3']).toMatchObject({ status: 'ok' });
    expect((await client.send(new ListObjectsV2Command({ Bucket }))).Contents ?? []).toEqual([]);
    expect((await results({ ...S3, S3_BUCKET: 'no-such-bucket' })).checks['s3']).toMatchObject({
      status: 'fail',
      advice: expect.stringContaining('Create the bucket'),
    });
    expect((await results({ ...S3, S3_BUCKET: Bucket, S3_SECRET_ACCESS_KEY: 'wrong' })).checks['s3']).toMatchObject({
      status: 'fail',
      advice: expect.stringContaining('S3_SECRET_ACCESS_KEY'),
    });
  },
);
