import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { freePort } from '@palestra/hosting';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Output formats, exit codes, colours and Ctrl-C of the built command line, on a real service. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-formats-'));
  server = await sharedServer();
  const events = ['one', 'two'].map((name) => ({
    eventType: 'rollout',
    eventId: randomUUID(),
    timestamp: Date.now(),
    runName: 'formats',
    rolloutName: name,
    environment: 'palestra/echo',
    split: 'train',
  }));
  await server.request('POST', '/v1/rollouts', { body: { events } });
  await server.request('POST', '/v1/environments', { body: { name: 'formats', source: { kind: 'bundled', name: 'echo' } } });
});
afterAll(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

const start = (args: readonly string[], extra: NodeJS.ProcessEnv = {}) =>
  spawn(process.execPath, [CLI, ...args], {
    cwd: folder,
    env: { ...process.env, PALESTRA_URL: server.url, PALESTRA_API_KEY: server.apiKey, ...extra },
  });
async function palestra(args: readonly string[], extra: NodeJS.ProcessEnv = {}) {
  const child = start(args, extra);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}

/** These commands use a key, a run and its rollouts are live for ten seconds, and rollouts are compared with the ledger in the background. */
const VOLATILE = new Set(['last_used_at', 'live', 'state', 'verified']);

describe.each<[line: string, ofApi: string, field: string | null]>([
  ['env list --owner palestra', '/v1/environments?owner=palestra&limit=100', 'environments'],
  ['env tasks palestra/math --limit 3', '/v1/environments/palestra/math/tasks?split=train&limit=3', 'tasks'],
  ['env tools palestra/math', '/tools', 'tools'],
  ['runs', '/v1/runs?limit=20', 'runs'],
  ['runs list --search formats', '/v1/runs?search=formats&limit=20', 'runs'],
  ['rollouts formats', '/v1/runs/formats/rollouts?limit=20', 'rollouts'],
  ['keys list', '/v1/keys', 'keys'],
  ['tasks list formats', '/v1/environments/ORG/formats/task-sets', 'task_sets'],
])('palestra %s', (line, ofApi, field) => {
  test('has the data of the API in every format', async () => {
    const headers = { 'x-deployment': 'palestra/math' };
    const { body } = await server.request('GET', ofApi.replace('ORG', server.orgName), { headers });
    const expected = field === null ? body : body[field];
    const of = async (format: string) => {
      const { code, stdout } = await palestra([...line.split(' '), '-o', format]);
      expect(code, format).toBe(0);
      return stdout;
    };
    const stable = (value: unknown) =>
      JSON.parse(JSON.stringify(value, (key, one: unknown) => (VOLATILE.has(key) ? null : one))) as unknown;
    expect(stable(JSON.parse(await of('json')))).toEqual(stable(expected));
    expect(stable(parse(await of('yaml')))).toEqual(stable(expected));
    const lines = (await of('jsonl')).split('\n').filter(Boolean);
    expect(stable(lines.map((one) => JSON.parse(one) as unknown))).toEqual(stable(expected));
    const table = await of('table');
    // oxlint-disable-next-line no-control-regex -- colours must not be there
    expect(table).not.toMatch(/\u001b/);
    expect(table.split('\n')).toHaveLength(expected.length + 2);
  });
});

test('views and changes are the objects of the API', async () => {
  const get = await palestra(['env', 'get', 'formats', '-o', 'json']);
  expect(JSON.parse(get.stdout)).toMatchObject({ owner: server.orgName, name: 'formats', variants: expect.any(Array) });
  const created = JSON.parse((await palestra(['keys', 'create', 'made', '--scope', 'rollouts', '-o', 'json'])).stdout) as { id: string };
  expect(created).toMatchObject({ name: 'made', key: expect.stringMatching(/^or_/), scopes: ['rollouts'] });
  expect(parse((await palestra(['keys', 'revoke', created.id, '-o', 'yaml'])).stdout)).toMatchObject({ id: created.id, name: 'made' });
  expect(JSON.parse((await palestra(['runs', 'finish', 'formats', '-o', 'jsonl'])).stdout)).toMatchObject({
    name: 'formats',
    finished: true,
  });
  const written = await palestra(['prepare-tasks', '--env', 'palestra/math', '--max-tasks', '2', '--out', 'two.jsonl', '-o', 'json']);
  expect(JSON.parse(written.stdout)).toEqual({ written: 2, failed: 0, out: 'two.jsonl' });
  // The older spelling, in which --output is the file.
  const older = await palestra(['prepare-tasks', '--env', 'palestra/math', '--max-tasks', '2', '--output', 'older.jsonl']);
  expect(older.stdout).toBe('2 tasks written to older.jsonl\n');
});

test('prepare-tasks without any task leaves an existing file as it was', async () => {
  const file = path.join(folder, 'kept.jsonl');
  await writeFile(file, 'kept\n');
  // Read by the server, and by sessions.
  for (const options of [[], ['--concurrency', '1']]) {
    const args = ['prepare-tasks', '--env', 'palestra/math', '--split', 'nowhere', '--out', 'kept.jsonl', ...options];
    expect(await palestra(args)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/Unknown split "nowhere"[^]*no task could be read; kept\.jsonl was not written\n$/),
    });
    expect(await readFile(file, 'utf8')).toBe('kept\n');
  }
});

test('an unknown run is named', async () => {
  const told = expect.stringContaining('No such run: no-such-run. List your runs with "palestra runs".');
  for (const line of [
    'runs finish no-such-run',
    'rollouts no-such-run',
    'rollouts export --run no-such-run --out exported',
    'compare formats no-such-run',
  ])
    expect(await palestra(line.split(' ')), line).toMatchObject({ code: 1, stderr: told });
});

test('rollouts import reads all files before it uploads one', async () => {
  const line = JSON.stringify({ messages: [{ role: 'user', content: 'x' }], reward: '1' });
  await writeFile(path.join(folder, 'good.jsonl'), `${line}\n`);
  await writeFile(path.join(folder, 'table.csv'), 'a,b\n');
  const refused = await palestra(['rollouts', 'import', 'good.jsonl', 'table.csv', '--run', 'imported-whole']);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('table.csv: unknown format') });
  expect((await palestra(['rollouts', 'imported-whole'])).code).toBe(1);
  const read = await palestra(['rollouts', 'import', 'good.jsonl', '--run', 'imported-whole', '-o', 'json']);
  expect(JSON.parse(read.stdout)).toMatchObject([{ file: 'good.jsonl', accepted: 2, unreadable: 0 }]);
});

test('a reader of the notes that leaves does not end an import', async () => {
  const good = JSON.stringify({ messages: [{ role: 'user', content: 'x' }] });
  await writeFile(path.join(folder, 'noisy.jsonl'), `${'{\n'.repeat(10)}${good}\n`);
  const child = start(['rollouts', 'import', 'noisy.jsonl', '--run', 'noisy', '-o', 'json']);
  child.stderr.destroy();
  const [stdout] = await Promise.all([text(child.stdout), once(child, 'close')]);
  expect(JSON.parse(stdout)).toMatchObject([{ accepted: 2, unreadable: 10 }]);
  expect(child.exitCode).toBe(1);
});

test('an export tells the files of another one in its folder', async () => {
  const args = ['rollouts', 'export', '--run', 'formats', '--out', 'shards'];
  const first = await palestra([...args, '--shard-rows', '1']);
  expect(first).toMatchObject({ code: 0, stderr: expect.not.stringContaining('another export') });
  const second = await palestra(args);
  expect(second).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^shards also has files of another export.*: \S+-00000-of-00002\.\S+, \S+-00001-of-00002/m),
  });
});

describe('exit codes, and errors for programs', () => {
  const closed = async () => ({ PALESTRA_URL: `http://127.0.0.1:${await freePort()}` });
  const refusing = async (status: number) => {
    const http = createServer((_, response) => response.writeHead(status, { 'retry-after': '0' }).end('{"detail":"Not now."}'));
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    return { url: `http://127.0.0.1:${(http.address() as { port: number }).port}`, close: () => http.close() };
  };

  test.each<[string, number, string, number | null]>([
    ['runs --colour', 2, 'usage', null],
    ['runs -o csv', 2, 'usage', null],
    ['nonsense', 2, 'usage', null],
    ['env get a/b/c', 2, 'usage', null],
    ['rollouts import nowhere.jsonl', 2, 'usage', null],
    ['runs finish no-such-run', 1, 'run_not_found', 404],
    ['env get palestra/nowhere', 1, 'environment_not_found', 404],
  ])('palestra %s ends with %i', async (line, code, name, statusCode) => {
    const plain = await palestra(line.split(' '));
    expect(plain).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(/^(?:palestra|error): /) });
    const { stderr, ...rest } = await palestra([
      ...line.split(' ').filter((word) => word !== 'csv'),
      ...(line.endsWith('csv') ? ['csv'] : []),
      '--output=json',
    ]);
    expect(rest).toEqual({ code, stdout: '' });
    expect(JSON.parse(stderr)).toEqual({ code: name, message: expect.stringMatching(/^(?!error)\S/), statusCode });
    expect(stderr.split('\n')).toHaveLength(2);
  });

  test('3 without a service, 4 without a right, both with what to do', async () => {
    const away = await palestra(['runs', '-o', 'json'], await closed());
    expect({ code: away.code, ...JSON.parse(away.stderr) }).toMatchObject({ code: 'unreachable', statusCode: null });
    expect(away.code).toBe(3);
    const wrong = await palestra(['runs'], { PALESTRA_API_KEY: 'or_wrong' });
    expect(wrong).toMatchObject({ code: 4, stderr: expect.stringContaining('PALESTRA_API_KEY') });
    expect((await palestra(['runs'], { PALESTRA_API_KEY: '', OPENREWARD_API_KEY: '' })).code).toBe(4);
    const { key } = JSON.parse((await palestra(['keys', 'create', 'narrow', '--scope', 'sessions', '-o', 'json'])).stdout) as {
      key: string;
    };
    const narrow = await palestra(['keys', 'list', '-o', 'json'], { PALESTRA_API_KEY: key });
    expect(narrow.code).toBe(4);
    expect(JSON.parse(narrow.stderr)).toMatchObject({ statusCode: 403 });
    const busy = await refusing(503);
    expect((await palestra(['runs'], { PALESTRA_URL: busy.url })).code).toBe(3);
    busy.close();
  });

  test('130 and 143 for signals, and nothing is left behind', async () => {
    const slow = createServer(() => {}).listen(0, '127.0.0.1');
    await once(slow, 'listening');
    const url = `http://127.0.0.1:${(slow.address() as { port: number }).port}`;
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const connected = once(slow, 'request');
      const child = start(['runs', '-o', 'json'], { PALESTRA_URL: url });
      const stderr = text(child.stderr);
      await connected;
      child.kill(signal);
      await once(child, 'close');
      expect(child.exitCode).toBe(code);
      expect(JSON.parse(await stderr)).toEqual({ code: 'interrupted', message: 'Interrupted.', statusCode: null });
    }
    slow.closeAllConnections();
    slow.close();
  });

  test('help explains them', async () => {
    expect((await palestra(['help', 'exit-codes'])).stdout).toMatch(/^code {2}meaning\n0 .*\n1 .*\n2 .*\n3 .*\n4 .*\n5 .*\n130 /);
    expect((await palestra(['help', 'env', 'push'])).stdout).toContain('Usage: palestra env push');
    expect(await palestra(['help', 'env', 'pussh'])).toMatchObject({ code: 2, stdout: '' });
  });
});

test('colours: none without a terminal, FORCE_COLOR gives them, NO_COLOR and --no-color take them away', async () => {
  const help = async (args: string[], extra: NodeJS.ProcessEnv) => (await palestra([...args, '--help'], { NO_COLOR: '', ...extra })).stdout;
  const codes = '\u001b[';
  expect(await help(['runs'], {})).not.toContain(codes);
  expect(await help(['runs'], { FORCE_COLOR: '1' })).toContain(codes);
  expect(await help(['runs', '--no-color'], { FORCE_COLOR: '1' })).not.toContain(codes);
  expect(await help(['runs'], { FORCE_COLOR: '1', NO_COLOR: '1' })).not.toContain(codes);
  expect((await palestra(['runs'], { FORCE_COLOR: '1', NO_COLOR: '' })).stdout).toContain(codes);
  expect((await palestra(['runs', '-o', 'json'], { FORCE_COLOR: '1', NO_COLOR: '' })).stdout).not.toContain(codes);
});

test('a terminal gets a table of its width', async () => {
  await writeFile(path.join(folder, 'narrow.sh'), `stty cols 40; exec "${process.execPath}" "${CLI}" env list --owner palestra\n`);
  const child = spawn('script', ['-qec', 'sh narrow.sh', '/dev/null'], {
    cwd: folder,
    env: { ...process.env, PALESTRA_URL: server.url, PALESTRA_API_KEY: server.apiKey, NO_COLOR: '1' },
  });
  const [stdout] = await Promise.all([text(child.stdout), once(child, 'close')]);
  const lines = stdout.split(/\r?\n/).filter(Boolean);
  expect(lines.length).toBeGreaterThan(4);
  expect(Math.max(...lines.map((line) => [...line].length))).toBeLessThanOrEqual(40);
  expect(stdout).toContain('…');
});
