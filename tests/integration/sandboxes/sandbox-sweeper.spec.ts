import { HostingError, type Provider, type SandboxProvider } from '@palestra/hosting';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { HostingProviders } from '../../../apps/api/src/environments/hosting/providers/hosting-providers.ts';
import { insertSandbox } from '../../../apps/api/src/environments/hosting/sandboxes/sandbox.sql.ts';
import { SandboxSweeper } from '../../../apps/api/src/environments/hosting/sandboxes/sandbox-sweeper.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** Which sandboxes a pass of `SandboxSweeper` removes. The sessions and sandboxes are rows of the service; the engine has what a test gives it. */

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ jobs: 'off' });
});
afterAll(() => server?.close());

/** Ids of the sandboxes that the engine has. */
let onEngine: Set<string>;
/** Ids that the engine was asked to remove, in this order. */
let removals: string[];
let refusal: (id: string) => Error | null;
let sweeper: SandboxSweeper;
beforeEach(async () => {
  [onEngine, removals, refusal] = [new Set(), [], () => null];
  await query('DELETE FROM sandboxes');
  const sandboxes = {
    list: async () => {
      const error = refusal('list');
      if (error !== null) throw error;
      return [...onEngine].map((id) => ({ id, running: true }));
    },
    remove: async (id) => {
      removals.push(id);
      const error = refusal(id);
      if (error !== null) throw error;
      onEngine.delete(id);
    },
  } satisfies Pick<SandboxProvider, 'list' | 'remove'>;
  const providers = { all: async () => [{ name: 'remote' }, { name: 'docker', sandboxes }] as unknown as Provider[] };
  sweeper = new SandboxSweeper(server.serviceDatabase, providers as unknown as HostingProviders, server.config, createLogger('silent'));
});

const query = async <T extends object>(text: string, values: unknown[] = []) => (await server.database.pool.query<T>(text, values)).rows;
const stored = async () => (await query<{ id: string }>('SELECT id FROM sandboxes ORDER BY id')).map(({ id }) => id);
const end = (name: string) => query('UPDATE sessions SET ended_at = now() WHERE sid = $1', [name]);

/** A sandbox with the row of its session, as `create_sandbox` makes them. */
async function open(name: string): Promise<string> {
  const id = `session-${name}`;
  await query(
    `INSERT INTO sessions (sid, org_id, user_id, state, version, heartbeat_timeout_ms, idle_timeout_ms, created_at, last_seen_at, last_request_at)
     VALUES ($1, 'org', 'user', 'ready', 1, 60000, 60000, now(), now(), now())`,
    [name],
  );
  await insertSandbox(server.database.pool, { sid: name, id, orgId: 'org', cpus: 1, memoryMb: 256 }, server.config.limits);
  onEngine.add(id);
  return id;
}

test('one of a living session stays; one whose session ended, or that no session has, is removed with its row', async () => {
  const living = await open('living');
  await open('ended');
  await end('ended');
  onEngine.add('session-without-a-row');
  // Of a build or of an older use of the engine.
  onEngine.add('trial-1');
  await sweeper.sweep();
  expect([...onEngine]).toEqual([living, 'trial-1']);
  expect(await stored()).toEqual([living]);
  await sweeper.sweep();
  expect(removals.toSorted()).toEqual(['session-ended', 'session-without-a-row']);
});

test('one that was reserved and is not on the engine yet keeps its row', async () => {
  const id = await open('starting');
  onEngine.clear();
  await sweeper.sweep();
  expect(await stored()).toEqual([id]);
  expect(removals).toEqual([]);
});

test('while the engine is away nothing is removed and no row is forgotten', async () => {
  const id = await open('unreachable');
  await end('unreachable');
  refusal = () => new HostingError('engine_unavailable', 'The engine does not answer.');
  await expect(sweeper.sweep()).rejects.toMatchObject({ code: 'engine_unavailable' });
  expect(await stored()).toEqual([id]);
  refusal = () => null;
  await sweeper.sweep();
  expect([[...onEngine], await stored()]).toEqual([[], []]);
});

test('one pass removes 50, and those that cannot be removed do not keep the others', async () => {
  const stuck = Array.from({ length: 60 }, (_, n) => `session-stuck-${n}`);
  const others = Array.from({ length: 10 }, (_, n) => `session-other-${n}`);
  for (const id of [...stuck, ...others]) onEngine.add(id);
  refusal = (id) => (stuck.includes(id) ? new HostingError('instance_failed', 'The engine cannot remove it.') : null);
  await sweeper.sweep();
  expect(removals).toHaveLength(50);
  expect(onEngine.size).toBe(70);
  await sweeper.sweep();
  expect(removals).toHaveLength(100);
  expect([...onEngine].toSorted()).toEqual(stuck.toSorted());
});
