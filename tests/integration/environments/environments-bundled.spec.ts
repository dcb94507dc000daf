import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, type BackendCreate } from '@palestra/session';
import { BundledEnvironments } from '../../../apps/api/src/environments/bundled/bundled-environments.ts';
import { DiscoveryService } from '../../../apps/api/src/environments/discovery.service.ts';
import { EnvironmentRepository } from '../../../apps/api/src/environments/environment.repository.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** The bundled environments as the child processes that they are. */
const bundledNames = ['bench', 'coding', 'coding_env', 'ctf', 'echo', 'echo_env', 'math', 'whodunit'];

let server: TestServer;
let repository: EnvironmentRepository;
let bundled: BundledEnvironments;
let echo: Backend;

beforeAll(async () => {
  server = await startServer();
  repository = new EnvironmentRepository(server.database);
  const config = { ...server.config, bundledEnvironments: true };
  bundled = new BundledEnvironments(config, repository, new DiscoveryService(repository), createLogger('silent'));
  await bundled.onModuleInit();
  await bundled.onApplicationBootstrap();
  echo = bundled.backend('echo');
});
afterAll(async () => {
  await bundled?.onApplicationShutdown();
  await server?.close();
});

const soon = () => AbortSignal.timeout(40_000);
const first = (): BackendCreate => ({
  sid: randomUUID(),
  env: null,
  task: { kind: 'index', split: 'train', index: 0 },
  toolsetName: null,
  secrets: {},
});
const say = (backend: Backend, ref: Record<string, unknown>) =>
  backend.session(ref).call({ tool: 'echo', input: { text: 'ping' }, taskId: randomUUID() }, soon());

async function until(condition: () => boolean): Promise<void> {
  for (let waited = 0; !condition(); waited += 10) {
    if (waited > 30_000) throw new Error('did not happen');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe('bundled environments', () => {
  test('cannot be the source of another environment where they are not hosted', async () => {
    const { status, body } = await server.request('POST', '/v1/environments', {
      body: { name: 'mine', source: { kind: 'bundled', name: 'ctf' } },
    });
    expect({ status, body }).toMatchObject({ status: 400, body: { detail: expect.stringContaining('"ctf"') } });
  });

  test('are registered once, are public, and cannot be changed', async () => {
    const { body } = await server.request('GET', '/v1/environments?owner=palestra');
    expect(body.environments.map((environment: { name: string }) => environment.name)).toEqual(bundledNames);
    expect(body.environments.every((environment: { readme_content: string }) => environment.readme_content.startsWith('#'))).toBe(true);
    expect((await server.request('PUT', '/v1/environments/palestra/echo/details', { body: { new_name: 'mine' } })).status).toBe(403);
    expect((await server.request('DELETE', '/v1/environments/palestra/echo')).status).toBe(403);
    expect(body.environments[bundledNames.indexOf('echo')]).toMatchObject({
      name: 'echo',
      split_types: expect.arrayContaining(['train']),
      total_task_count: expect.any(Number),
    });
    // This server's own part was told to run without them.
    expect(body.environments[0]).toMatchObject({ source: { kind: 'bundled' }, status: 'unreachable' });
  });

  test.each([
    ['whodunit', 1_000],
    ['ctf', 100],
    ['math', 100],
    ['echo', 1_000],
    ['echo_env', 1],
    ['coding_env', 1],
    ['coding', 300],
    ['bench', 1],
  ])('%s runs and has at least %i train tasks', async (name, least) => {
    // Two of them run what a model wrote, and say how it is isolated.
    const detail = name.startsWith('coding') ? expect.stringMatching(/^Isolation: (?:namespace|process)/) : null;
    expect(bundled.status(name)).toEqual({ status: 'ready', detail });
    expect(await bundled.backend(name).numTasks(null, 'train', soon())).toBeGreaterThanOrEqual(least);
    expect((await bundled.backend(name).tools(null, soon())).tools.length).toBeGreaterThan(0);
  });

  test('have the version of their tasks; a later one is added once', async () => {
    const versionOf = async (name: string) => (await repository.find('palestra', name))!.versions[0]!.number;
    expect([await versionOf('ctf'), await versionOf('echo')]).toEqual([2, 1]);
    const { id } = (await repository.find('palestra', 'bench'))!;
    await Promise.all([1, 3, 3].map((number) => repository.ensureVersion(id, number, { kind: 'bundled', name: 'bench' })));
    expect((await repository.versions(id)).map(({ number }) => number)).toEqual([3, 1]);
  });

  test('a dead child loses its sessions, and restarts', async () => {
    const ref = await echo.create(first(), soon());
    expect(await say(echo, ref)).toMatchObject({ ok: true, reward: 0.1, finished: false });
    process.kill(bundled.pid('echo')!, 'SIGKILL');
    await until(() => bundled.status('echo').status === 'starting');
    await expect(say(echo, ref)).rejects.toMatchObject({ code: 'session_lost' });
    await expect(echo.create(first(), soon())).rejects.toMatchObject({ code: 'environment_starting', status: 503, backendStarting: true });
    await until(() => bundled.status('echo').status === 'ready');
    expect(await say(echo, await echo.create(first(), soon()))).toMatchObject({ ok: true });
    await expect(say(echo, ref)).rejects.toMatchObject({ code: 'session_lost' });
    await echo.session(ref).delete(soon());
  });

  test('a name that is no longer bundled is not run', async () => {
    expect(bundled.status('gone').status).toBe('unreachable');
    await expect(bundled.backend('gone').splits(null, soon())).rejects.toMatchObject({ code: 'backend_unreachable' });
  });
});
