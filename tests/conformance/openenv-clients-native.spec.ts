import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../integration/protocols/openenv.world.ts';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { openEnvPython, type OpenEnvServerProcess, startOpenEnv } from './support/openenv-server.ts';
import { run } from './support/python.ts';

/** Real OpenEnv servers that are full, broken, or in production mode, seen by OpenEnv clients through Palestra. */
const python = 'PALESTRA_PYTHON_OE_0_10_0';
let palestra: SharedPalestra;
let servers: OpenEnvServerProcess[] = [];

beforeAll(async () => {
  palestra = await sharedPalestra();
  servers = await Promise.all([
    startOpenEnv({ python, app: 'guess_app', env: { MAX_CONCURRENT_ENVS: '1' } }),
    startOpenEnv({ python, app: 'tools_app' }),
    startOpenEnv({ python, app: 'tools_app', env: { OPENENV_MODE: 'production' } }),
  ]);
  for (const [index, name] of ['single', 'broken', 'production'].entries()) {
    const source = { kind: 'openenv', url: servers[index]!.url };
    const answer = await fetch(`${palestra.url}/v1/environments`, {
      method: 'POST',
      headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ name, namespace: palestra.namespace, description: '', isPrivate: false, source }),
    });
    if (!answer.ok) throw new Error(`POST /v1/environments: ${answer.status} ${await answer.text()}`);
  }
}, 240_000);
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

const connect = (name: string) => Client.open(`${palestra.url}/openenv/${palestra.namespace}/${name}/ws`, { 'x-api-key': palestra.apiKey });

test('queues the second client of a full server', async () => {
  const [first, second] = [await connect('single'), await connect('single')];
  await first.reset({ split: 'test', index: 0 });
  const waiting = second.reset({ split: 'test', index: 1 });
  await expect(Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 1_500, 'waits'))])).resolves.toBe('waits');
  expect(await first.step({ guess: 5 })).toMatchObject({ reward: 1, done: true, observation: { hint: 'right' } });
  await first.close();
  expect(await waiting).toMatchObject({ observation: { prompt: 'Guess a number.' } });
  expect(await second.step({ guess: 99, fault: 'bool_reward' })).toMatchObject({ reward: true });
  await second.close();
});

test('reports a failing constructor as FACTORY_ERROR', async () => {
  // A server that is broken from the beginning is not registered.
  await servers[1]!.stop();
  servers[1] = await startOpenEnv({ python, app: 'broken_app', port: servers[1]!.port });
  const client = await connect('broken');
  const reply = await client.ask({ type: 'reset' });
  expect(reply, JSON.stringify(reply)).toMatchObject({
    type: 'error',
    data: { code: 'FACTORY_ERROR', factory_name: expect.any(String) as string },
  });
  expect(await client.ended()).toEqual({ code: 1000, reason: '' });
});

test('serves a production mode server without routes to play', async () => {
  const base = `${palestra.url}/openenv/${palestra.namespace}/production`;
  for (const [method, route] of [
    ['POST', '/reset'],
    ['POST', '/step'],
    ['GET', '/state'],
  ] as const) {
    expect((await fetch(base + route, { method, headers: { 'x-api-key': palestra.apiKey } })).status).toBe(404);
  }
  const openenv = path.join(path.dirname(openEnvPython(python)), 'openenv');
  const url = base.replace('//', `//key:${palestra.apiKey}@`);
  const finished = await run(openenv, ['validate', '--url', url, '--json']);
  expect(finished.code, finished.output).toBe(0);
  expect(JSON.parse(finished.stdout)).toMatchObject({ passed: true, mode: 'production', summary: { passed_count: 6 } });
});
