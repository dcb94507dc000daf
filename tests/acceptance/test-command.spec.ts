import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import { expect, test } from 'vitest';

/** A check that cannot fail is a defect: whoever runs the tests, by hand or in a pipeline, goes by how the command ends. */

const root = path.resolve(import.meta.dirname, '../..');

/** The tests of that name beside the PostgreSQL of all integration tests. */
function run(which: string) {
  const config = path.join(root, 'tests/support/fixtures/one-test/vitest.config.ts');
  const args = [path.join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config, '-t', which];
  const env = { ...process.env, VITEST: undefined, VITEST_WORKER_ID: undefined, VITEST_POOL_ID: undefined };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
  // Its output is complete only then.
  return { child, ended: once(child, 'close') as Promise<[code: number | null]>, output: () => output };
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const open = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return open;
}

test.each([
  ['passes', 0],
  ['fails', 1],
])('a run of integration tests of which one %s ends with %i', async (which, status) => {
  const { ended, output } = run(which);
  const [code] = await ended;
  expect(output()).toContain(`1 ${status === 0 ? 'passed' : 'failed'}`);
  expect(code, output()).toBe(status);
});

test('a test run that a signal ends leaves no PostgreSQL running', async () => {
  const { child, ended, output } = run('waits');
  await expect.poll(output, { timeout: 90_000 }).toMatch(/waiting beside \S+:\d+\n/);
  const port = Number(/waiting beside \S+:(\d+)/.exec(output())![1]);
  expect(await listens(port)).toBe(true);
  child.kill('SIGTERM');
  expect((await ended)[0], output()).not.toBe(0);
  await expect.poll(() => listens(port)).toBe(false);
});
