import { once } from 'node:events';
import net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { InProcessBackend, testCaller } from '../../../libs/session/src/in-process.fixture.ts';
import { ask, call, encode, open, sidOf, until } from './session-requests.ts';
import { useReplicas } from './replicas.world.ts';
import type { Replica } from './sessions.world.ts';

/** Several API processes on one PostgreSQL, each with a process of the environment beside it, and requests that land anywhere. */
const { start, stored, query, transaction } = useReplicas();

describe('sessions that belong to one process', () => {
  test('any process forwards their requests in one hop', async () => {
    const [one, two] = [await start({ owned: true }), await start({ owned: true })];
    const sid = await open(one);
    expect(await call(two, sid, 'count')).toMatchObject({ status: 200, said: 'call 1' });
    expect(await call(one, sid, 'count')).toMatchObject({ said: 'call 2' });
    expect((await ask(two, 'GET', '/prompt', { sid })).text).toContain('1+1');
    expect(await ask(two, 'POST', '/ping', { sid })).toMatchObject({ status: 200 });
    expect(await ask(two, 'POST', '/delete', { sid })).toMatchObject({ status: 200 });
    expect(one.backend.deleted).toEqual([sid]);
    expect(await call(one, sid, 'count')).toMatchObject({ status: 410, error: 'session_deleted' });
    expect((await call(two, sid, 'count')).error).toBe('session_deleted');
  });

  test('a request of another organisation is not forwarded', async () => {
    const [one, two] = [await start({ owned: true }), await start({ owned: true })];
    const sid = await open(one);
    expect((await ask(two, 'POST', '/ping', { sid, key: 'mallory' })).status).toBe(404);
  });

  /** How much longer than its 100 ms a timer with a query takes here, at worst: what a busy machine adds to each of the service's steps. */
  function watchDelays(): () => Promise<number> {
    let watching = true;
    let worst = 0;
    const watched = (async () => {
      while (watching) {
        const began = performance.now();
        await new Promise((resolve) => setTimeout(resolve, 100));
        await query('SELECT 1');
        worst = Math.max(worst, performance.now() - began - 100);
      }
    })();
    return async () => {
      watching = false;
      await watched;
      return worst;
    };
  }

  test('sessions of a dead owner are lost within five seconds', async () => {
    const [one, two] = [await start({ owned: true }), await start({ owned: true })];
    const [asked, forgotten] = [await open(one), await open(one)];
    await one.kill();
    const killedAt = Date.now();
    const delays = watchDelays();
    expect(await call(two, asked, 'count')).toMatchObject({ status: 410, error: 'session_lost' });
    await until(
      () => stored(forgotten),
      ({ state }) => state === 'lost',
    );
    // The lease, the look for orphans, and the question of this test are late by a delay each.
    expect(Date.now() - killedAt).toBeLessThan(5_000 + 3 * (await delays()));
    expect(await stored(forgotten)).toMatchObject({ failure_class: 'infrastructure', secrets: null });
  });
});

describe('a process whose lease has ended', () => {
  /** As on a machine that is too busy: renewals come to nothing. */
  async function holdLease({ server }: Replica): Promise<void> {
    await query(`CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`);
    await query(
      `CREATE TRIGGER held BEFORE UPDATE ON session_replicas FOR EACH ROW WHEN (OLD.id = '${server.replicaId}') EXECUTE FUNCTION never()`,
    );
    onTestFinished(async () => void (await query('DROP FUNCTION never CASCADE')));
    await until(
      async () =>
        (await query(`SELECT seen_at < now() - interval '5 s' AS ended FROM session_replicas WHERE id = $1`, [server.replicaId])).rows[0],
      ({ ended }) => ended,
    );
  }

  test('keeps its sessions while it answers, and loses them when it stops answering', async () => {
    const [one, two] = [await start({ owned: true }), await start({ owned: true })];
    const [asked, forgotten] = [await open(one), await open(one)];
    await holdLease(one);
    // Its lease ended two seconds ago, and the others look every second.
    expect([(await stored(asked))['state'], (await stored(forgotten))['state']]).toEqual(['ready', 'ready']);
    expect(await call(two, asked, 'count')).toMatchObject({ status: 200, said: 'call 1' });
    await one.kill();
    expect(await call(two, asked, 'count')).toMatchObject({ status: 410, error: 'session_lost' });
    await until(
      () => stored(forgotten),
      ({ state }) => state === 'lost',
    );
  });
});

test('a long outage of PostgreSQL makes no process dead', async () => {
  const replicas = [await start({ owned: true }), await start({ owned: true })];
  const sids = await Promise.all(replicas.map((replica) => open(replica)));
  const away = await transaction();
  await away.query('LOCK TABLE session_replicas IN ACCESS EXCLUSIVE MODE');
  await away.query(`UPDATE session_replicas SET seen_at = seen_at - interval '1 minute'`);
  // Longer than a lease: each process has noticed.
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  // Back again, it answers who looks for orphans before those whose leases have ended come to renew them.
  await away.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not yet''; END'`);
  await away.query('CREATE TRIGGER refused BEFORE UPDATE ON session_replicas FOR EACH ROW EXECUTE FUNCTION refuse()');
  await away.query('COMMIT');
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  await query('DROP FUNCTION refuse CASCADE');
  for (const [index, sid] of sids.entries()) {
    expect(await call(replicas[index]!, sid, 'count')).toMatchObject({ status: 200, said: 'call 1' });
    expect(await stored(sid)).toMatchObject({ state: 'ready', owner_replica_id: replicas[index]!.server.replicaId });
  }
});

describe('deterministic environments', () => {
  const policy = { deterministic: true };

  test('a session whose process died continues in a new one', async () => {
    const one = await start({ owned: true, policy });
    const sid = await open(one);
    for (const n of [1, 2, 3]) expect((await call(one, sid, 'count')).said).toBe(`call ${n}`);
    one.backend.forgetAll();
    expect((await call(one, sid, 'count')).said).toBe('call 4');
    expect(await stored(sid)).toMatchObject({ state: 'ready' });
    one.backend.forgetAll();
    expect((await ask(one, 'GET', '/prompt', { sid })).text).toContain('1+1');
    expect((await call(one, sid, 'count')).said).toBe('call 5');
  });

  test('a call that ran when the process died runs again in the restored session and is answered once', async () => {
    const one = await start({ owned: true, policy });
    const sid = await open(one);
    await call(one, sid, 'count');
    const running = call(one, sid, 'slow', { n: 300 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    one.backend.forgetAll();
    expect(await running).toMatchObject({ said: 'slow done' });
    expect((await call(one, sid, 'count')).said).toBe('call 3');
    const { rows } = await query('SELECT tool, state FROM session_calls WHERE sid = $1 ORDER BY seq', [sid]);
    expect(rows).toEqual([
      { tool: 'count', state: 'result' },
      { tool: 'slow', state: 'result' },
      { tool: 'count', state: 'result' },
    ]);
  });

  test('survive the death and the shutdown of their API process', async () => {
    const [one, two] = [await start({ owned: true, policy }), await start({ owned: true, policy })];
    const [killed, drained] = [await open(one), await open(two)];
    await call(one, killed, 'count');
    await call(two, drained, 'count');
    await one.kill();
    // Another input: an equal call right after the death of its process counts as the one that it may have cut.
    expect((await call(two, killed, 'count', { n: 2 })).said).toBe('call 2');
    const three = await start({ owned: true, policy });
    await two.close();
    expect((await call(three, drained, 'count', { n: 2 })).said).toBe('call 2');
    expect((await call(three, killed, 'count', { n: 3 })).said).toBe('call 3');
  });

  test('a replay with another result ends the session as diverged', async () => {
    const one = await start({ owned: true, policy });
    const sid = await open(one);
    await call(one, sid, 'count');
    await call(one, sid, 'random');
    one.backend.forgetAll();
    const refused = await call(one, sid, 'count');
    expect(refused.error).toMatch(/Session diverged: replayed in a new process, call 2 \(random/);
    expect(await stored(sid)).toMatchObject({ state: 'diverged', failure_class: 'environment' });
    expect(await call(one, sid, 'count')).toMatchObject({ status: 410, error: 'session_diverged' });
  });

  test('a fork begins with the first calls of a session and is then independent', async () => {
    const one = await start({ owned: true, policy });
    const sid = await open(one);
    for (let n = 0; n < 3; n += 1) await call(one, sid, 'count');
    const caller = {
      orgId: 'alice',
      userId: 'user-alice',
      orgName: 'alice',
      keyId: null,
      scopes: [],
      anonymous: false,
      maxSessions: { key: null, org: null },
    };
    const fork = await one.server.engine.fork(caller, { sid, atCall: 2, recording: null });
    expect((await call(one, fork, 'count')).said).toBe('call 3');
    expect((await call(one, sid, 'count')).said).toBe('call 4');
    await expect(one.server.engine.fork(caller, { sid, atCall: 9, recording: null })).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await stored(fork)).toMatchObject({ forked_from: sid, forked_at_call: 2 });
  });
});

test('a fork of a session that cannot be replayed is refused', async () => {
  const one = await start({ owned: true });
  const sid = await open(one);
  const caller = {
    orgId: 'alice',
    userId: 'u',
    orgName: 'alice',
    keyId: null,
    scopes: [],
    anonymous: false,
    maxSessions: { key: null, org: null },
  };
  await expect(one.server.engine.fork(caller, { sid, atCall: null, recording: null })).rejects.toMatchObject({ code: 'not_deterministic' });
});

/** Posts a call on a connection that is cut as soon as `when` is in the answer. */
async function callAndCut(replica: Replica, sid: string, tool: string, input: object, when: string): Promise<void> {
  const body = JSON.stringify({ name: tool, input });
  const socket = net.connect(Number(new URL(replica.url).port), '127.0.0.1');
  await once(socket, 'connect');
  const head = ['POST /call HTTP/1.1', 'host: x', 'x-api-key: alice', `x-session-id: ${sid}`, 'user-agent: Python/3.11 aiohttp/3.12'];
  socket.write(`${[...head, 'content-type: application/json', `content-length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`);
  let seen = '';
  socket.on('data', (data: Buffer) => {
    seen += data.toString();
    if (seen.includes(when)) socket.resetAndDestroy();
  });
  await once(socket, 'close');
}

/** Waits until the process has seen that a client of the session is gone. */
async function noticed(sid: string): Promise<void> {
  await until(
    async () => (await query('SELECT FROM session_calls WHERE sid = $1 AND broken_at IS NOT NULL', [sid])).rowCount,
    (count) => count === 1,
  );
}

describe('an equal call without a task id', () => {
  test('joins the undelivered call, also on another process', async () => {
    const backend = new InProcessBackend();
    const [one, two] = [await start({}, backend), await start({}, backend)];
    const sid = await open(one);
    for (const [when, by] of [
      ['task_id', one],
      ['event: end', two],
      ['event: end', one],
    ] as const) {
      const before = backend.executions.get(sid) ?? 0;
      await callAndCut(one, sid, 'slow', { n: 150, when, before }, when);
      await noticed(sid);
      expect(await call(by, sid, 'slow', { n: 150, when, before })).toMatchObject({ status: 200, said: 'slow done' });
      expect(backend.executions.get(sid)).toBe(before + 1);
    }
  });

  test('is a new call when the first one was delivered: at the same time, later, and on another process', async () => {
    const backend = new InProcessBackend();
    const [one, two] = [await start({}, backend), await start({}, backend)];
    const sid = await open(one);
    await Promise.all([call(one, sid, 'slow', { n: 50 }), call(one, sid, 'slow', { n: 50 })]);
    await call(one, sid, 'slow', { n: 50 });
    await call(two, sid, 'slow', { n: 50 });
    expect(backend.executions.get(sid)).toBe(4);
  });

  test('joins once; the next equal call runs', async () => {
    const one = await start({});
    const sid = await open(one);
    await callAndCut(one, sid, 'count', {}, 'task_id');
    await noticed(sid);
    expect((await call(one, sid, 'count')).said).toBe('call 1');
    expect((await call(one, sid, 'count')).said).toBe('call 2');
  });

  test('waits for the end of the lease of the process that served the first call', async () => {
    const backend = new InProcessBackend();
    const [one, two] = [await start({}, backend), await start({}, backend)];
    const sid = await open(one);
    const cut = call(one, sid, 'slow', { n: 20_000 }).catch(() => null);
    await until(
      async () => backend.executions.get(sid),
      (count) => count === 1,
    );
    await one.kill();
    await cut;
    // Nobody can know what became of it: this environment's process gave no id to resume by.
    expect((await call(two, sid, 'slow', { n: 20_000 })).error).toContain('Session lost');
    expect(backend.executions.get(sid)).toBe(1);
    expect(await stored(sid)).toMatchObject({ state: 'lost', failure_class: 'infrastructure' });
  });
});

describe('a request that a client repeats after a lost answer', () => {
  test('an equal /create joins the first one if its answer was undelivered, and is 400 otherwise', async () => {
    const one = await start({});
    const sid = await open(one);
    const create = () => ask(one, 'POST', '/create', { sid, body: { split: 'train', index: 0 } });
    expect(await create()).toMatchObject({ status: 400 });
    await one.server.engine.markCreateUndelivered(sid);
    expect(await create()).toMatchObject({ status: 200 });
    expect(await create()).toMatchObject({ status: 400 });
  });
});

describe('secrets', () => {
  const value = 'sk-very-secret-"quoted"-value';
  const headers = { 'x-secrets': encode({ TOKEN: { value } }) };

  test('reach the environment from any process, are hidden in answers, and are erased with the session', async () => {
    const backend = new InProcessBackend();
    const [one, two] = [await start({}, backend), await start({}, backend)];
    const sid = sidOf((await ask(one, 'POST', '/create_session', { body: {}, headers })).text);
    expect(await ask(two, 'POST', '/create', { sid, body: { split: 'train', index: 0 } })).toMatchObject({ status: 200 });
    expect(backend.secrets.get(sid)).toEqual({ TOKEN: { value } });
    expect((await call(one, sid, 'secret')).said).toBe('[secret:TOKEN]');
    expect((await call(two, sid, 'echo', { text: `it is ${value}` })).said).toBe('it is [secret:TOKEN]');
    expect((await ask(one, 'GET', '/prompt', { sid })).text).toContain('the key is [secret:TOKEN]');
    const calls = async () => (await query('SELECT * FROM session_calls WHERE sid = $1', [sid])).rows;
    // A result is stored a moment after it was told.
    await expect.poll(async () => (await calls()).map(({ state }) => state)).toEqual(['result', 'result']);
    const everything = JSON.stringify([await stored(sid), await calls()]);
    expect(everything).toContain('[secret:TOKEN]');
    expect(everything).not.toContain('very-secret');
    expect((await stored(sid))['secrets']).not.toBeNull();
    await ask(one, 'POST', '/delete', { sid });
    expect((await stored(sid))['secrets']).toBeNull();
  });
});

test('a fork needs a slot, and a process that shuts down opens none', async () => {
  const one = await start({
    policy: { deterministic: true, capacity: 1, heartbeatTimeoutMs: 120_000 },
    queue: { limit: 10, patienceMs: 3_000 },
  });
  const sid = await open(one);
  await call(one, sid, 'count');
  const caller = testCaller('alice');
  await expect(one.server.engine.fork(caller, { sid, atCall: null, recording: null })).rejects.toMatchObject({
    code: 'capacity_exhausted',
  });
  await ask(one, 'POST', '/delete', { sid });
  const fork = await one.server.engine.fork(caller, { sid, atCall: null, recording: null });
  expect(await stored(fork)).toMatchObject({ heartbeat_timeout_ms: 120_000, admitted_at: expect.any(Date) });
  one.server.engine.refuseNew();
  await expect(one.server.engine.fork(caller, { sid, atCall: null, recording: null })).rejects.toMatchObject({ code: 'shutting_down' });
});

test('a request to a process that hands over its sessions is told to retry', async () => {
  const one = await start({ owned: true, policy: { deterministic: true } });
  const sid = await open(one);
  one.server.engine.refuseNew();
  await until(
    () => stored(sid),
    ({ state }) => state === 'ready',
  );
  await query(
    `UPDATE sessions SET owner_replica_id = NULL, state = 'restoring', version = version + 1, written_by = 'another' WHERE sid = $1`,
    [sid],
  );
  await one.server.engine.refreshLocation(testCaller('alice'), sid);
  expect(await call(one, sid, 'count')).toMatchObject({ status: 503, error: 'session_moved' });
});
