import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../../support/server.ts';
import { createCaller } from '../../support/callers.ts';
import { callTool, closeSession, eventually, openSession, startObserved, type World } from '../observed.world.ts';

let server: TestServer;
let world: World;
beforeAll(async () => {
  server = await startServer();
  world = await startObserved(server);
});
afterAll(async () => {
  await server?.close();
  await world?.upstream.close();
});

/** Value of a sample; undefined when there is none. */
async function sample(name: string, labels: Record<string, string>, of: TestServer = server): Promise<number | undefined> {
  const { body } = await of.request('GET', '/metrics');
  for (const line of String(body).split('\n')) {
    const [, found, text, value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (found === name && Object.entries(labels).every(([key, wanted]) => text?.includes(`${key}="${wanted}"`))) return Number(value);
  }
  return undefined;
}

test('metrics need a key, in either header, unless they are public', async () => {
  const get = (headers: Record<string, string>) => fetch(`${server.url}/metrics`, { headers });
  expect((await get({})).status).toBe(401);
  expect((await get({ 'x-api-key': 'or_wrong' })).status).toBe(401);
  expect((await get({ authorization: 'Bearer or_wrong' })).status).toBe(401);
  expect((await get({ authorization: `Bearer ${server.apiKey}` })).status).toBe(200);
  const answer = await get({ 'x-api-key': server.apiKey });
  expect(answer.headers.get('content-type')).toContain('text/plain; version=0.0.4');
  // They name everybody's environments and tools.
  const { headers } = await createCaller(server, 'tenants');
  const refused = await get(headers);
  expect(refused.status).toBe(403);
  expect(await refused.text()).toContain('forbidden');
  const open = await startServer({ metricsPublic: true });
  expect((await fetch(`${open.url}/metrics`)).status).toBe(200);
  await open.close();
});

test('sessions, calls and requests are counted by environment, tool and failure class', async () => {
  const environment = world.environment;
  const sid = await openSession(server, environment);
  await callTool(server, sid, 'score', { reward: 1 });
  await callTool(server, sid, 'score', { reward: 1 });
  await callTool(server, sid, 'raise');
  for (const invented of ['nonsense-1', 'nonsense-2']) await callTool(server, sid, invented);
  // Counts of PostgreSQL are up to five seconds old.
  await eventually(async () => ((await sample('palestra_sessions', { environment, state: 'ready' })) === 1 ? true : null));
  expect(await sample('palestra_sessions', { environment, state: 'restoring' })).toBe(0);
  expect(await sample('palestra_sessions_waiting', { environment })).toBe(0);
  expect(await sample('palestra_sessions_opened_total', { environment })).toBe(1);
  expect(await sample('palestra_calls_total', { environment, tool: 'score', failure_class: 'ok' })).toBe(2);
  expect(await sample('palestra_calls_total', { environment, tool: 'raise', failure_class: 'environment' })).toBe(1);
  expect(await sample('palestra_calls_total', { environment, tool: 'unknown', failure_class: 'policy' })).toBe(2);
  expect(await sample('palestra_calls_total', { tool: 'nonsense-1' })).toBeUndefined();
  expect(await sample('palestra_call_duration_seconds_count', { environment, failure_class: 'ok' })).toBe(2);
  expect(await sample('palestra_calls_running', {})).toBe(0);
  await closeSession(server, sid);
  expect(await sample('palestra_sessions_ended_total', { environment, state: 'closed', failure_class: 'ok' })).toBe(1);
  const broken = await openSession(server, environment, {}, 1);
  await callTool(server, broken, 'score', { reward: 1 });
  await closeSession(server, broken);
  expect(await sample('palestra_sessions_ended_total', { environment, state: 'closed', failure_class: 'environment' })).toBe(1);
  expect(await sample('palestra_http_request_duration_seconds_count', { method: 'POST', route: '/call', status: '2xx' })).toBeGreaterThan(
    4,
  );
  await server.request('GET', '/no/such/path/as-this');
  expect(await sample('palestra_http_request_duration_seconds_count', { route: 'none', status: '4xx' })).toBeGreaterThan(0);
  expect(await sample('nodejs_eventloop_lag_seconds', {})).toBeDefined();
  expect(await sample('process_resident_memory_bytes', {})).toBeGreaterThan(1_000_000);
});

test('any replica reports the sessions of all', async () => {
  const sid = await openSession(server, world.environment);
  await callTool(server, sid, 'score', { reward: 1 });
  const stored = 'SELECT 1 FROM sessions WHERE sid = $1 AND state = $2';
  await eventually(async () => ((await server.database.pool.query(stored, [sid, 'ready'])).rowCount === 1 ? true : null));
  const other = await startServer({ databaseUrl: server.config.databaseUrl, dataDir: server.config.dataDir });
  expect(await sample('palestra_sessions', { environment: world.environment, state: 'ready' }, other)).toBe(1);
  expect(await sample('palestra_sessions_opened_total', { environment: world.environment }, other)).toBeUndefined();
  await other.close();
  await closeSession(server, sid);
});

test('uploaded events are counted by outcome', async () => {
  const id = '7b1e4d2a-1f6b-4f0e-9f59-0d9c4f6a1b11';
  const start = { eventType: 'rollout', eventId: id, timestamp: 1, runName: 'counted' };
  const message = {
    eventType: 'message',
    eventId: id,
    rolloutEventId: id,
    timestamp: 1,
    index: 0,
    type: 'user_message',
    content: 'x',
    isFinished: false,
    metadata: {},
  };
  await server.request('POST', '/v1/rollouts', { body: { events: [start, message, message, { eventType: 'nonsense' }] } });
  expect(await sample('palestra_ingest_events_total', { outcome: 'accepted' })).toBe(2);
  expect(await sample('palestra_ingest_events_total', { outcome: 'duplicate' })).toBe(1);
  expect(await sample('palestra_ingest_events_total', { outcome: 'rejected' })).toBe(1);
});
