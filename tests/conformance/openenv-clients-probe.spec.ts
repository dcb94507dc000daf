import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { conformanceFolder, openEnvPython, type OpenEnvServerProcess, startOpenEnv } from './support/openenv-server.ts';
import { run } from './support/python.ts';

/**
 * The shared probe against a real server, and against the same server through Palestra: every message and every error. PALESTRA_OPENENV_ECHO names a
 * folder of the OpenEnv checkout (`envs`) to take its own echo environment instead of ours.
 */
let server: OpenEnvServerProcess;
let palestra: SharedPalestra;
const checkout = process.env['PALESTRA_OPENENV_ECHO'];

beforeAll(async () => {
  const app = checkout ? 'echo_env.server.app:app' : 'openenv_echo_env:app';
  server = await startOpenEnv({
    python: 'PALESTRA_PYTHON_OE_0_10_0',
    app,
    ...(checkout && { folder: checkout }),
    env: { MAX_CONCURRENT_ENVS: '64' },
  });
  palestra = await sharedPalestra();
  const answer = await fetch(`${palestra.url}/v1/environments`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'echo_env',
      namespace: palestra.namespace,
      description: '',
      isPrivate: false,
      source: { kind: 'openenv', url: server.url },
    }),
  });
  if (!answer.ok) throw new Error(`POST /v1/environments: ${answer.status} ${await answer.text()}`);
});
afterAll(async () => {
  await server?.stop();
});

async function transcript(url: string): Promise<string[]> {
  const probe = path.join(conformanceFolder(), 'openenv_wsprobe.py');
  const options = ['--normalise', '--attach', '--width', '100000', '--timeout', '30'];
  const finished = await run(openEnvPython('PALESTRA_PYTHON_OE_0_10_0'), [probe, url, ...options]);
  expect(finished.code, finished.output).toBe(0);
  return finished.stdout.trimEnd().split('\n');
}

describe('through Palestra', () => {
  test('passes recordings of a server through unchanged', async () => {
    const direct = await transcript(server.url.replace('http', 'ws'));
    const ours = await transcript(`ws://key:${palestra.apiKey}@${palestra.url.slice(7)}/openenv/${palestra.namespace}/echo_env`);
    expect(direct.length).toBeGreaterThan(90);
    expect(ours).toEqual(direct);
  });
});
