import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';

/** A check that cannot fail is a defect: whoever runs the tests, by hand or in a pipeline, goes by how the command ends. */

const root = path.resolve(import.meta.dirname, '../..');

test.each([
  ['passes', 0],
  ['fails', 1],
])('a run of integration tests of which one %s ends with %i', (which, status) => {
  const config = path.join(root, 'tests/support/fixtures/one-test/vitest.config.ts');
  const args = [path.join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config, '-t', which];
  const env = { ...process.env, VITEST: undefined, VITEST_WORKER_ID: undefined, VITEST_POOL_ID: undefined };
  const ended = spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8', timeout: 50_000 });
  expect(ended.stdout).toContain(`1 ${status === 0 ? 'passed' : 'failed'}`);
  expect(ended.status, ended.stderr).toBe(status);
});
