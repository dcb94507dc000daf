import { freePort } from '@palestra/hosting';
import { describe, expect, it, test } from 'vitest';
import { messageOf, ok, runCheck } from './check.ts';
import { checkContainers, checkDisk, checkNode } from './machine.ts';
import { judgeSettings, type Settings } from './postgres.ts';
import { checkKey, checkServer, checkVersions, judgeSkew, probeServer } from './server.ts';

test('a check that throws has failed, with the causes', async () => {
  const error = new Error('no answer', {
    cause: new TypeError('fetch failed', { cause: new AggregateError([new Error('connect ECONNREFUSED ::1:1')]) }),
  });
  expect(messageOf(error)).toBe('no answer: connect ECONNREFUSED ::1:1');
  const broken = await runCheck('odd', () => {
    throw error;
  });
  expect(broken).toMatchObject({ check: 'odd', status: 'fail', detail: 'no answer: connect ECONNREFUSED ::1:1' });
  expect(await runCheck('fine', () => ok('yes'))).toEqual({ check: 'fine', status: 'ok', detail: 'yes', advice: null });
});

describe('node', () => {
  it.each(['18.20.0', '20.18.3', '21.7.0', '22.11.0'])('%s is too old', (version) => {
    expect(checkNode(version)).toMatchObject({ status: 'fail', advice: expect.stringContaining('Install Node.js') });
  });
  it.each(['20.19.0', '22.12.0', '24.0.0', '26.1.0'])('%s is supported', (version) => {
    expect(checkNode(version).status).toBe('ok');
  });
});

describe('disk', () => {
  const withFree = (gigabytes: number) => checkDisk('/nowhere/yet', (async () => ({ bavail: gigabytes, bsize: 1024 ** 3 })) as never);
  it('warns of little space, fails for almost none, also for a folder that does not exist yet', async () => {
    expect(await withFree(0)).toMatchObject({ status: 'fail', advice: expect.stringContaining('PALESTRA_DATA_DIR') });
    expect(await withFree(2)).toMatchObject({ status: 'warn' });
    expect(await withFree(50)).toEqual({ status: 'ok', detail: '50.0 GB are free for /nowhere/yet.', advice: null });
  });
});

describe('containers', () => {
  const answers = { state: 'answers', version: '5.4' } as const;
  const missing = { state: 'missing' } as const;
  const silent = { state: 'silent', reason: 'Cannot connect to the Docker daemon' } as const;
  it('needs Docker or Podman; kubectl alone is not enough', async () => {
    expect(await checkContainers(async ({ name }) => (name === 'podman' ? answers : missing))).toEqual({
      status: 'ok',
      detail: 'docker is not installed; podman 5.4 answers; kubectl is not installed.',
      advice: null,
    });
    expect(await checkContainers(async ({ name }) => (name === 'docker' ? silent : missing))).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining('docker does not answer (Cannot connect to the Docker daemon)'),
      advice: expect.stringMatching(/^Start docker/),
    });
    expect(await checkContainers(async ({ name }) => (name === 'kubectl' ? answers : missing))).toMatchObject({
      status: 'warn',
      advice: expect.stringMatching(/^Install Docker or Podman/),
    });
  });
});

describe('settings of PostgreSQL', () => {
  const fine: Settings = {
    server_version: '18.6 (Debian)',
    server_encoding: 'UTF8',
    fsync: 'on',
    autovacuum: 'on',
    transaction_read_only: 'off',
    max_connections: '100',
    wal_compression: 'pglz',
  };
  it('are fine as the service sets them', () => {
    expect(judgeSettings(fine, 16)).toBeNull();
  });
  it.each<[Partial<Settings>, 'warn' | 'fail', RegExp]>([
    [{ server_encoding: 'SQL_ASCII' }, 'fail', /encoding SQL_ASCII/],
    [{ transaction_read_only: 'on' }, 'fail', /read-only/],
    [{ fsync: 'off' }, 'fail', /fsync/],
    [{ max_connections: '62' }, 'warn', /opens up to 63/],
    [{ autovacuum: 'off' }, 'warn', /autovacuum/],
    [{ server_version: '15.3' }, 'warn', /15\.3 is older/],
    [{ wal_compression: 'off' }, 'warn', /wal_compression/],
  ])('%j is a problem', (change, status, detail) => {
    expect(judgeSettings({ ...fine, ...change }, 16)).toMatchObject({
      status,
      detail: expect.stringMatching(detail),
      advice: expect.any(String),
    });
  });
});

test('the clock may differ by the second that the header hides', () => {
  expect(judgeSkew(900, 'the server').status).toBe('ok');
  expect(judgeSkew(-20_000, 'the server')).toMatchObject({ status: 'warn', detail: expect.stringContaining('20 s behind the server') });
  expect(judgeSkew(7_200_000, 'PostgreSQL')).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('7200 s ahead of PostgreSQL'),
  });
});

describe('the server', () => {
  const probe = { url: 'http://127.0.0.1:1', apiKey: '', answer: null, reason: 'connect ECONNREFUSED' };
  it('that does not answer is one failed check, which says how to start one', async () => {
    const closed = `http://127.0.0.1:${await freePort()}`;
    expect(await probeServer({ PALESTRA_URL: closed })).toMatchObject({ answer: null, reason: expect.stringContaining('ECONNREFUSED') });
    expect(await checkServer(probe)).toMatchObject({ status: 'fail', advice: expect.stringContaining('palestra up') });
    expect([checkVersions(probe).status, (await checkKey(probe)).status]).toEqual(['warn', 'warn']);
  });
  it('of another kind or version is named', async () => {
    const answered = (version: string | null) => ({ ...probe, answer: { status: 200, version, clockSkewMs: 0 } });
    expect(await checkServer(answered('0.1.167'))).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('not a Palestra server'),
    });
    expect(checkVersions(answered('0.1.167+palestra.9.9.9'))).toMatchObject({
      status: 'warn',
      advice: 'Install the same version: npm install palestra@9.9.9',
    });
    expect(await checkKey(answered('0.1.167+palestra.0.1.0'))).toMatchObject({
      status: 'fail',
      advice: expect.stringContaining('PALESTRA_API_KEY'),
    });
  });
});
