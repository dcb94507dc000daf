import type pg from 'pg';
import { SseParser } from '@palestra/kit/sse';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { SessionPolicy } from '@palestra/session';
import { InProcessBackend } from '../../../libs/session/src/in-process.fixture.ts';
import { createDatabase } from '../../support/server.ts';
import { ask, call, encode, open, sidOf, until } from './session-requests.ts';
import { startReplica } from './sessions.world.ts';
import { openPool } from '../../../apps/api/src/platform/database/pool.ts';

/** Deadlines and timeouts of an environment, and what becomes of its sessions at them. */
let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: pg.Pool;

beforeAll(async () => {
  database = await createDatabase();
  sql = openPool({ connectionString: database.url, max: 2 });
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

async function start(policy: Partial<SessionPolicy>, backend = new InProcessBackend()) {
  const replica = await startReplica(database.url, backend, { policy });
  onTestFinished(() => replica.close());
  return { ...replica, backend };
}

const stored = async (sid: string) => (await sql.query('SELECT * FROM sessions WHERE sid = $1', [sid])).rows[0] as Record<string, unknown>;

describe('timeouts', () => {
  test('a client that only pings ends after the idle timeout, a silent one after the heartbeat timeout', async () => {
    const one = await start({ idleTimeoutMs: 2_000, heartbeatTimeoutMs: 900_000 });
    const sid = await open(one);
    const pings = setInterval(() => void ask(one, 'POST', '/ping', { sid }).catch(() => {}), 300);
    onTestFinished(() => clearInterval(pings));
    await until(
      () => stored(sid),
      ({ state }) => state === 'expired',
      30_000,
    );
    expect(await stored(sid)).toMatchObject({ failure_class: 'infrastructure' });
    // The state is stored before the episode is deleted.
    await expect.poll(() => one.backend.deleted).toEqual([sid]);
    expect((await ask(one, 'POST', '/ping', { sid })).status).toBe(410);
  });

  test('a session that is not created frees its slot for the next one', async () => {
    const one = await start({ capacity: 1, heartbeatTimeoutMs: 1_000 });
    const headers = { 'x-secrets': encode({ api_key: { value: 'alice' } }) };
    await ask(one, 'POST', '/create_session', { body: {}, headers });
    const startedAt = Date.now();
    await open(one, headers);
    // Two lease times, and the sweep of five seconds that ends one.
    expect(Date.now() - startedAt).toBeLessThan(20_000);
  });
});

describe('deadlines', () => {
  test('a call that exceeds its deadline loses its session, because its outcome is unknown', async () => {
    const one = await start({ callTimeoutMs: 200 });
    const sid = await open(one);
    expect((await call(one, sid, 'slow', { n: 5_000 })).error).toContain('took longer than 0.2 s');
    expect(await stored(sid)).toMatchObject({ state: 'lost', failure_class: 'infrastructure' });
    // How calls ended is stored in batches.
    await expect
      .poll(async () => (await sql.query('SELECT state, failure_class, reward FROM session_calls WHERE sid = $1', [sid])).rows)
      .toEqual([{ state: 'refused', failure_class: 'infrastructure', reward: null }]);
    expect(await call(one, sid, 'count')).toMatchObject({ status: 504, error: 'call_timeout' });
  });

  test('a setup that exceeds its deadline fails', async () => {
    const one = await start({ setupTimeoutMs: 100 });
    const sid = await open(one, {}, 'slowenv');
    expect(await call(one, sid, 'count')).toMatchObject({ status: 504, error: 'setup_timeout' });
    expect(await stored(sid)).toMatchObject({ state: 'failed', failure_class: 'infrastructure' });
    expect((await ask(one, 'POST', '/ping', { sid })).status).toBe(200);
  });
});

describe('the failure class', () => {
  test('is on every call and session, and no failure becomes a reward', async () => {
    const one = await start({});
    const sid = await open(one);
    await call(one, sid, 'submit');
    await call(one, sid, 'no_such_tool');
    await call(one, sid, 'boom');
    await ask(one, 'POST', '/delete', { sid });
    await until(
      async () => (await sql.query('SELECT 1 FROM session_calls WHERE sid = $1 AND ended_at IS NULL', [sid])).rowCount,
      (n) => n === 0,
    );
    const { rows } = await sql.query('SELECT tool, failure_class, reward FROM session_calls WHERE sid = $1 ORDER BY seq', [sid]);
    expect(rows).toEqual([
      { tool: 'submit', failure_class: 'ok', reward: 1 },
      { tool: 'no_such_tool', failure_class: 'policy', reward: null },
      { tool: 'boom', failure_class: 'environment', reward: null },
    ]);
    expect(await stored(sid)).toMatchObject({ state: 'closed', failure_class: 'ok' });
    for (const [tool, failure_class] of Object.entries({ boom: 'environment', judge: 'infrastructure' })) {
      const headers = {
        'x-api-key': 'alice',
        'x-session-id': await open(one),
        'x-palestra-failure': '1',
        'content-type': 'application/json',
      };
      const answer = await fetch(`${one.url}/call`, { method: 'POST', headers, body: JSON.stringify({ name: tool, input: {} }) });
      const failure = new SseParser().push(await answer.text()).find(({ event }) => event === 'failure');
      expect(JSON.parse(failure!.data)).toMatchObject({ code: null, failure_class });
    }
    const broken = await open(one, {}, 'brokenenv');
    expect((await ask(one, 'GET', '/prompt', { sid: broken })).status).toBe(500);
    expect(await stored(broken)).toMatchObject({ state: 'failed', failure_class: 'environment' });
  });
});

describe('an idempotent tool', () => {
  test('runs again when its process died, and other tools do not', async () => {
    const policy = { idempotentTools: ['slow'] };
    const backend = new InProcessBackend();
    const [one, two] = [await startReplica(database.url, backend, { policy }), await start(policy, backend)];
    const sid = await open(one);
    const cut = call(one, sid, 'slow', { n: 1_000 }).catch(() => null);
    await until(
      async () => backend.executions.get(sid),
      (count) => count === 1,
    );
    await one.kill();
    await cut;
    expect(await call(two, sid, 'slow', { n: 1_000 })).toMatchObject({ said: 'slow done' });
    expect(backend.executions.get(sid)).toBe(2);
    const calls = async () => (await sql.query('SELECT state FROM session_calls WHERE sid = $1', [sid])).rows;
    await until(calls, ([first]) => first.state === 'result');
    expect(await calls()).toHaveLength(1);
  });
});

describe('a process that dies while it opens a session', () => {
  test('the client’s next attempt opens the session on another process', async () => {
    const backend = new InProcessBackend();
    const [one, two] = [await startReplica(database.url, backend), await start({}, backend)];
    const sid = sidOf((await ask(one, 'POST', '/create_session', { body: {} })).text);
    const body = { task_spec: { q: '1+1', construct_ms: 3_000 } };
    const first = ask(one, 'POST', '/create', { sid, body }).catch(() => null);
    await until(
      () => stored(sid),
      ({ state }) => state === 'starting',
    );
    await one.kill();
    await first;
    expect(await ask(two, 'POST', '/create', { sid, body })).toMatchObject({ status: 200 });
    expect((await call(two, sid, 'count')).said).toBe('call 1');
  });

  test('the next attempt joins an interrupted one while the constructor runs', async () => {
    const one = await start({});
    const sid = sidOf((await ask(one, 'POST', '/create_session', { body: {} })).text);
    const body = { task_spec: { q: '1+1', construct_ms: 3_000 } };
    const first = ask(one, 'POST', '/create', { sid, body });
    await until(
      () => stored(sid),
      ({ state }) => state === 'starting',
    );
    expect((await ask(one, 'POST', '/create', { sid, body })).status).toBe(400);
    await one.server.engine.markCreateUndelivered(sid);
    expect((await ask(one, 'POST', '/create', { sid, body })).status).toBe(200);
    expect((await first).status).toBe(200);
  });
});
