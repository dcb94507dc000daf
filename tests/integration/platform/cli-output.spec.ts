import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Where the built command line writes to. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const shell = async (command: string, url = server.url) => {
  const env = { ...process.env, PALESTRA_URL: url, PALESTRA_API_KEY: server.apiKey };
  const child = spawn('bash', ['-o', 'pipefail', '-c', command.replace('palestra', `"${process.execPath}" "${CLI}"`)], { env });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
};

test('a reader that closes the pipe is not an error', async () => {
  const { code, stdout, stderr } = await shell('palestra env tasks palestra/whodunit --limit 500 | head -1');
  expect(stdout.split('\n')).toHaveLength(2);
  expect({ code, stderr: stderr.replace(/^\d+ of \d+ tasks\n/, '') }).toEqual({ code: 0, stderr: '' });
});

test('a full disk is reported in one line', async () => {
  const { code, stderr } = await shell('palestra env list > /dev/full');
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/palestra: Cannot write: .*ENOSPC[^\n]*\n$/) });
});

test('an unreachable server is reported with its variable', async () => {
  const { code, stderr } = await shell('palestra runs', 'http://127.0.0.1:1');
  expect(code).toBe(1);
  expect(stderr).toMatch(/^palestra: .*ECONNREFUSED.*Is the server running\?[^\n]*\n$/);
});

test('doctor reports what works, and how programs are isolated', async () => {
  const healthy = await shell('palestra doctor');
  expect(healthy.stdout).toMatch(/^ok +server, key .*\nok +environments .*\nok +isolation .*Isolation: (namespace|process)/);
  expect(healthy).toMatchObject({ code: 0, stderr: '' });
  const alone = await shell('palestra doctor', 'http://127.0.0.1:1');
  expect(alone).toMatchObject({ code: 1, stdout: expect.stringMatching(/^FAIL +server, key .*ECONNREFUSED/) });
});
