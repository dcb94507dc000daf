import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { callTool, closeSession, eventually, openSession, startObserved, type World } from '../observed.world.ts';

/** What the built command line says of sessions, their environments and their rollouts. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
let world: World;

beforeAll(async () => {
  server = await sharedServer();
  world = await startObserved(server);
});
afterAll(async () => {
  await server?.close();
  await world?.upstream.close();
});

async function palestra(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = {
    ...process.env,
    OPENREWARD_URL: server.url,
    OPENREWARD_API_URL: server.url,
    OPENREWARD_SESSION_URL: server.url,
    OPENREWARD_API_KEY: server.apiKey,
  };
  const run = promisify(execFile)(process.execPath, [CLI, ...args], { env });
  return run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

const policyOf = async () => (await server.request('GET', `/v1/environments/${world.environment}`)).body.sessions;

test('env set refuses an invalid policy', async () => {
  expect(await palestra('env', 'set', world.environment, '--capacity', 'many')).toMatchObject({ code: 2 });
  expect(await palestra('env', 'set', world.environment, '--heartbeat', '-1')).toMatchObject({ code: 2 });
  expect((await palestra('env', 'set', world.environment, '--heartbeat', '1e9')).code).toBe(1);
  expect((await palestra('env', 'set', `${server.orgName}/nowhere`, '--capacity', '1')).stderr).toContain('palestra: ');
  expect(await policyOf()).toBeNull();
});

test('env set changes the given settings, keeps the others, and resets settings on request', async () => {
  const first = await palestra('env', 'set', world.environment, '--capacity', '8', '--heartbeat', '120', '--idempotent', 'tell,hear');
  expect(first.stderr).toBe('');
  const policy = { capacity: 8, heartbeat_timeout_s: 120, idempotent_tools: ['tell', 'hear'] };
  expect(JSON.parse(first.stdout)).toEqual(policy);
  expect(await policyOf()).toEqual(policy);
  await palestra('env', 'set', world.environment, '--deterministic', '--call', '30', '--capacity', 'none');
  expect(await policyOf()).toEqual({ ...policy, capacity: null, deterministic: true, call_timeout_s: 30 });
  expect((await palestra('env', 'get', world.environment)).stdout).toContain('"heartbeat_timeout_s":120');
  await palestra('env', 'set', world.environment, '--reset', '--idle', '60');
  expect(await policyOf()).toEqual({ idle_timeout_s: 60 });
  expect((await palestra('env', 'set', world.environment, '--reset')).stdout).toBe('{}\n');
  expect(await policyOf()).toBeNull();
});

test('runs and rollouts distinguish recorded failures from rewards of 0', async () => {
  const run = { 'x-palestra-run': 'listed' };
  const zero = await openSession(server, world.environment, run);
  await callTool(server, zero, 'score', { reward: 0, finished: true });
  const failed = await openSession(server, world.environment, run);
  await callTool(server, failed, 'raise');
  await Promise.all([zero, failed].map((sid) => closeSession(server, sid)));
  const id = await eventually(async () => {
    const { body } = await server.request('GET', '/v1/runs?name=listed');
    return body.runs[0]?.num_errors === 1 && body.runs[0].num_scored === 1 ? (body.runs[0].id as string) : null;
  });
  const runs = (await palestra('runs')).stdout.split('\n');
  expect(runs[0]).toMatch(/rollouts\s+failed\s+mean reward/);
  expect(runs.find((line) => line.includes('listed'))).toMatch(/listed\s+2\s+1\s+0\s/);
  const rollouts = (await palestra('rollouts', id)).stdout;
  expect(rollouts).toContain('env_error');
  expect(rollouts).toContain('finished');
  expect((await palestra('runs', 'finish', 'listed')).stdout).toBe('listed is finished.\n');
  expect((await server.request('GET', `/v1/runs/${id}`)).body).toMatchObject({ finished: true });
});
