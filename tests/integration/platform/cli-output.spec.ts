import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
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

test('an unreachable server is reported at once with its variable', async () => {
  const { code, stderr } = await shell('palestra runs', 'http://127.0.0.1:1');
  expect(code).toBe(3);
  expect(stderr).toMatch(/^palestra: .*ECONNREFUSED.*Is the server running\?[^\n]*\n$/);
});

test('README imports a chat as it says', async () => {
  const readme = await readFile(path.resolve(import.meta.dirname, '../../../README.md'), 'utf8');
  const [, block] = /```sh\n(chat=[^]*?)```/.exec(readme)!;
  const folder = await mkdtemp(path.join(tmpdir(), 'readme-'));
  const { code, stdout, stderr } = await shell(`cd ${folder}; ${block!.replace('npm run palestra --', 'palestra')}`);
  await rm(folder, { recursive: true });
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('events') });
  expect(stdout).toMatch(/^chat\.jsonl +openai +1 /m);
  expect((await shell('palestra rollouts baseline -o json')).stdout).toContain('"reward": 1');
});
