import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { SessionEngine } from './engine.ts';
import { InProcessBackend, OneEnvironmentDirectory, testCaller } from './in-process.fixture.ts';
import { MemoryAdmissionStore, MemoryCallLedger, MemoryLeases, MemorySessionStore, openBox } from './memory-ports.fixture.ts';
import type { CallOutcome } from './ports/call-ledger.port.ts';
import type { SessionPolicy } from './ports/session-policy.ts';

const alice = testCaller('alice');
const bob = testCaller('bob');

/** A world of one store, one ledger and one environment, with as many engines (API processes) as a test wants. */
function world(options: { policy?: Partial<SessionPolicy>; owned?: boolean } = {}) {
  const backend = new InProcessBackend();
  const directory = new OneEnvironmentDirectory(backend, options);
  const dead = new Set<string>();
  const store = new MemorySessionStore(dead);
  const ledger = new MemoryCallLedger(store);
  const leases = new MemoryLeases(dead);
  const problems: unknown[] = [];
  const engine = (replicaId: string) =>
    new SessionEngine({
      store,
      ledger,
      directory,
      replicaId,
      clock: systemClock,
      leases,
      box: openBox,
      observer: {},
      admission: new MemoryAdmissionStore(store),
      queue: { limit: 100, patienceMs: 60_000 },
      onBackgroundError: (error) => problems.push(error),
    });
  return { backend, directory, store, ledger, leases, dead, problems, engine, first: engine('first') };
}

type World = ReturnType<typeof world>;

async function reserve({ first, directory }: World, sid: string | null = null): Promise<string> {
  return first.reserve(alice, { sid, hosted: directory.hosted, secrets: null, recording: null });
}

function create(engine: SessionEngine, { directory }: World, sid: string, variant: string | null = null, spec: object = { q: '1+1' }) {
  return engine.create(alice, {
    sid,
    resolve: async () => directory.hosted,
    variant: async () => variant,
    task: { kind: 'spec', spec },
    toolsetName: null,
    secrets: null,
    recording: null,
  });
}

async function opened(here: World, variant: string | null = null): Promise<string> {
  const sid = await reserve(here);
  await create(here.first, here, sid, variant);
  return sid;
}

const callOf = (tool: string, input = {}, taskId: string | null = null) => ({ tool, input, taskId });
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: unknown) => (error instanceof PalestraError ? error.code : String(error)),
  );

/** Timers of this test, and the clock, can be moved. Short waits still end by themselves: this time also passes as the real one does. */
function movableTime(): (ms: number) => Promise<void> {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  onTestFinished(() => void vi.useRealTimers());
  return async (ms) => void (await vi.advanceTimersByTimeAsync(ms));
}

describe('reserve and create', () => {
  test('a create can be repeated when its failure could not be stored', async () => {
    const here = world();
    const sid = await reserve(here);
    const { update } = here.store;
    let updates = 0;
    here.store.update = async (record) => {
      // The claim is written; then the store is away, for the news that it has opened and for those that it has not.
      if ((updates += 1) > 1) throw new Error('away');
      return update.call(here.store, record);
    };
    await expect(create(here.first, here, sid)).rejects.toThrow('away');
    expect(updates).toBe(3);
    here.store.update = update;
    expect(here.store.records.get(sid)).toMatchObject({ state: 'starting', ref: null });
    await create(here.first, here, sid);
    expect(await codeOf(here.first.prompt(alice, sid))).toBe('ok');
    expect(await codeOf(create(here.first, here, sid))).toBe('session_exists');
  });

  test('a repeated reservation returns the same SID', async () => {
    const here = world();
    const sid = await reserve(here);
    expect(await reserve(here, sid)).toBe(sid);
    expect(here.store.records.size).toBe(1);
    expect(await codeOf(here.first.reserve(bob, { sid, hosted: here.directory.hosted, secrets: null, recording: null }))).toBe(
      'session_not_found',
    );
  });

  test('of two concurrent creates exactly one wins, on one process and on two', async () => {
    const here = world();
    for (const other of [here.first, here.engine('second')]) {
      const sid = await reserve(here);
      const codes = await Promise.all([codeOf(create(here.first, here, sid)), codeOf(create(other, here, sid))]);
      expect(codes.toSorted()).toEqual(['ok', 'session_exists']);
      const minted = crypto.randomUUID();
      const mintedCodes = await Promise.all([codeOf(create(here.first, here, minted)), codeOf(create(other, here, minted))]);
      expect(mintedCodes.toSorted()).toEqual(['ok', 'session_exists']);
    }
  });

  test('a refused create leaves the SID unbound', async () => {
    const here = world();
    const sid = await reserve(here);
    expect(await codeOf(create(here.first, here, sid, 'ctorenv'))).toBe('environment_failed');
    expect(here.store.records.get(sid)?.state).toBe('reserved');
    expect(await codeOf(here.first.ping(alice, sid))).toBe('session_not_found');
    expect(await codeOf(create(here.first, here, sid))).toBe('ok');
    expect(await codeOf(create(here.first, here, sid))).toBe('session_exists');
  });

  test('a delete while the constructor runs ends session and episode', async () => {
    const here = world();
    const sid = await reserve(here);
    const creating = codeOf(create(here.first, here, sid, null, { construct_ms: 10_000 }));
    await systemClock.sleep(20);
    await here.first.delete(alice, sid);
    expect(await creating).toBe('session_deleted');
    expect(here.store.records.get(sid)?.state).toBe('closed');
  });

  test('a delete while the opened episode is being stored ends session and episode', async () => {
    const here = world();
    const sid = await reserve(here);
    const { update } = here.store;
    let storing = false;
    here.store.update = async (record) => {
      if (record.ref !== null && record.state === 'starting') {
        storing = true;
        await systemClock.sleep(50);
      }
      return update.call(here.store, record);
    };
    const creating = codeOf(create(here.first, here, sid));
    await expect.poll(() => storing, { interval: 1 }).toBe(true);
    await here.first.delete(alice, sid);
    await creating;
    expect(here.store.records.get(sid)?.state).toBe('closed');
    expect(here.backend.deleted).toEqual([sid]);
  });

  test('a setup failure is kept, and the session still answers pings', async () => {
    const here = world();
    const sid = await opened(here, 'brokenenv');
    for (let turn = 0; turn < 2; turn += 1) {
      await expect(here.first.prompt(alice, sid)).rejects.toThrow('ValueError: setup exploded');
      await expect(here.first.call(alice, sid, callOf('echo'))).rejects.toThrow('ValueError: setup exploded');
    }
    await expect(here.first.taskTools(alice, sid)).rejects.toThrow('ValueError: setup exploded');
    await here.first.ping(alice, sid);
    expect(here.store.records.get(sid)).toMatchObject({ state: 'failed', failureClass: 'environment' });
    await here.first.delete(alice, sid);
    expect(await codeOf(here.first.ping(alice, sid))).toBe('session_deleted');
  });

  test('another organisation does not see the session', async () => {
    const here = world();
    const sid = await opened(here);
    for (const attempt of [here.first.ping(bob, sid), here.first.prompt(bob, sid), here.first.call(bob, sid, callOf('echo'))]) {
      expect(await codeOf(attempt)).toBe('session_not_found');
    }
    await here.first.delete(bob, sid);
    expect(await codeOf(here.first.ping(alice, sid))).toBe('ok');
  });
});

describe('calls', () => {
  test('concurrent requests with one task id run the tool once and get the same outcome', async () => {
    const here = world();
    const sid = await opened(here);
    const call = await here.first.call(alice, sid, callOf('slow', { n: 50 }));
    const running = call.outcome();
    const joined = await Promise.all([1, 2, 3].map(() => here.first.call(alice, sid, callOf('slow', { n: 50 }, call.taskId))));
    const outcomes = await Promise.all([running, ...joined.map((other) => other.outcome())]);
    expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome))).size).toBe(1);
    const later = await here.first.call(alice, sid, callOf('slow', { n: 50 }, call.taskId));
    expect(await later.outcome()).toEqual(outcomes[0]);
    const elsewhere = await here.engine('second').call(alice, sid, callOf('slow', { n: 50 }, call.taskId));
    expect(await elsewhere.outcome()).toEqual(outcomes[0]);
    expect(here.backend.executions.get(sid)).toBe(1);
  });

  test('after a client resumed an undelivered call by its task id, its next equal call is a new one', async () => {
    const here = world();
    const sid = await opened(here);
    const call = await here.first.call(alice, sid, callOf('slow', { n: 5 }));
    const outcome = await call.outcome();
    call.stream().undelivered();
    const back = await here.first.call(alice, sid, callOf('slow', { n: 5 }, call.taskId));
    expect(await back.outcome()).toEqual(outcome);
    const next = await here.first.call(alice, sid, callOf('slow', { n: 5 }));
    expect(next.taskId).not.toBe(call.taskId);
    await next.outcome();
    expect(here.backend.executions.get(sid)).toBe(2);
  });

  test('a call with an idempotency key runs once on all processes, and repeats no equal call', async () => {
    const here = world();
    const sid = await opened(here);
    const key = 'c5e6e3a2-one-of-its-own';
    const named = (n: number, idempotencyKey = key) => ({ ...callOf('slow', { n }), idempotencyKey });
    const broken = await here.first.call(alice, sid, callOf('slow', { n: 5 }));
    await broken.outcome();
    broken.stream().undelivered();
    const calls = await Promise.all([1, 2, 3].map(() => here.first.call(alice, sid, named(5))));
    const outcomes = await Promise.all(calls.map((call) => call.outcome()));
    expect(new Set(calls.map(({ taskId }) => taskId)).size).toBe(1);
    expect(calls[0]!.taskId).not.toBe(broken.taskId);
    expect(here.backend.executions.get(sid)).toBe(2);
    const elsewhere = await here.engine('second').call(alice, sid, named(5));
    expect([elsewhere.taskId, await elsewhere.outcome()]).toEqual([calls[0]!.taskId, outcomes[0]]);
    // Its broken stream is no mark for others.
    calls[0]!.stream().undelivered();
    const other = await here.first.call(alice, sid, named(5, 'c5e6e3a2-another-one'));
    expect(other.taskId).not.toBe(calls[0]!.taskId);
    await other.outcome();
    expect(here.backend.executions.get(sid)).toBe(3);
    expect(await codeOf(here.first.call(alice, sid, named(6)))).toBe('invalid_request');
    expect(await codeOf(here.first.call(alice, sid, named(6, '1')))).toBe('invalid_request');
    const running = here.first.call(alice, sid, named(50, 'c5e6e3a2-while-it-runs'));
    void (await running).outcome();
    expect(await codeOf(here.first.call(alice, sid, named(51, 'c5e6e3a2-while-it-runs')))).toBe('invalid_request');
  });

  test('a repeated request on another process waits for the process that runs the call', async () => {
    const here = world();
    const sid = await opened(here);
    const call = await here.first.call(alice, sid, callOf('slow', { n: 300 }));
    const outcome = call.outcome();
    const follower = await here.engine('second').call(alice, sid, callOf('slow', { n: 300 }, call.taskId));
    expect(await follower.outcome()).toEqual(await outcome);
    expect(here.backend.executions.get(sid)).toBe(1);
  });

  test('a call of a dead process is resumed if the backend knows it, otherwise the session is lost', async () => {
    const here = world();
    const sid = await opened(here);
    const intent = { sid, kind: 'call' as const, tool: 'echo', input: '{}', replicaId: 'dead', startedAt: 1 };
    here.dead.add('dead');
    await here.ledger.begin({ ...intent, taskId: 'a'.repeat(32) }, true);
    await here.ledger.upstream('a'.repeat(32), 'upstream-1');
    const resumed = await here.first.call(alice, sid, callOf('echo', { text: 'x' }, 'a'.repeat(32)));
    expect(await resumed.outcome()).toMatchObject({ type: 'result', ok: true });
    await here.ledger.begin({ ...intent, taskId: 'b'.repeat(32) }, true);
    const lost = await here.first.call(alice, sid, callOf('echo', { text: 'x' }, 'b'.repeat(32)));
    expect(await lost.outcome()).toMatchObject({ type: 'refused', code: 'session_lost' });
    expect(here.store.records.get(sid)).toMatchObject({ state: 'lost', failureClass: 'infrastructure' });
    expect(await codeOf(here.first.ping(alice, sid))).toBe('session_lost');
    // What it held on its server is given back.
    expect(here.backend.deleted).toEqual([sid]);
  });

  test('the end of a session of a dead process frees its slot', async () => {
    const here = world({ owned: true });
    const sid = await opened(here);
    here.dead.add('first');
    expect(await here.engine('second').locate(alice, sid)).toEqual({ here: true });
    expect(here.store.records.get(sid)).toMatchObject({ state: 'lost' });
    await expect.poll(() => here.backend.deleted).toEqual([sid]);
  });

  test('a replay has the deadlines of the first run, and exceeding one loses the session', async () => {
    const move = movableTime();
    for (const stuck of ['constructor', 'setup', 'call'] as const) {
      const here = world({ policy: { deterministic: true, setupTimeoutMs: 1_000, callTimeoutMs: 1_000 } });
      const sid = await opened(here);
      await (await here.first.call(alice, sid, callOf('count'))).outcome();
      here.backend.forgetAll();
      here.backend.stuck = stuck;
      const losing = (await here.first.call(alice, sid, callOf('count'))).outcome();
      await move(1_500);
      const lost = await losing;
      expect(lost).toMatchObject({ type: 'refused', code: 'session_lost' });
      expect((lost as { detail: string }).detail).toMatch(/Replayed in a fresh process, .* took longer than 1 s/);
      expect(here.store.records.get(sid)).toMatchObject({ state: 'lost', failureClass: 'infrastructure' });
      // What died is forgotten, and what came of the replay.
      if (stuck === 'constructor') expect(here.backend.givenUp).toEqual([sid]);
      else expect(here.backend.deleted.length).toBe(2);
    }
  });

  test('a replay waits until the environment has room for it, and begins again when its server is away for a moment', async () => {
    for (const code of ['capacity_exhausted', 'instance_failed', 'backend_unreachable'] as const) {
      const here = world({ policy: { deterministic: true } });
      const sid = await opened(here);
      await (await here.first.call(alice, sid, callOf('count'))).outcome();
      here.backend.forgetAll();
      const away = () => Promise.reject(new PalestraError(code));
      const { backend } = here;
      if (code === 'backend_unreachable')
        vi.spyOn(backend, 'session')
          .mockReturnValueOnce(backend.session({ sid }))
          .mockReturnValueOnce({ ...backend.session({ sid }), ready: away });
      else vi.spyOn(backend, 'create').mockImplementationOnce(away);
      const again = await here.first.call(alice, sid, callOf('count'));
      expect(await again.outcome(), code).toMatchObject({ type: 'result', text: expect.stringContaining('call 2') });
    }
  });

  test('a replay that the store interrupts is continued by the next request', async () => {
    const here = world({ policy: { deterministic: true } });
    const sid = await opened(here);
    await (await here.first.call(alice, sid, callOf('count'))).outcome();
    here.backend.forgetAll();
    vi.spyOn(here.ledger, 'journal').mockRejectedValueOnce(new PalestraError('database_unavailable'));
    expect(await (await here.first.call(alice, sid, callOf('count'))).outcome()).toMatchObject({ code: 'database_unavailable' });
    expect(here.store.records.get(sid)?.state).toBe('restoring');
    const again = await here.first.call(alice, sid, callOf('count'));
    expect(await again.outcome()).toMatchObject({ type: 'result', text: expect.stringContaining('call 2') });
  });

  test('a delete while a replay is being stored leaves no episode', async () => {
    const here = world({ policy: { deterministic: true } });
    const sid = await opened(here);
    await (await here.first.call(alice, sid, callOf('count'))).outcome();
    here.backend.forgetAll();
    const { update } = here.store;
    let storing = false;
    here.store.update = async (record) => {
      if (here.store.records.get(sid)?.state === 'restoring' && record.state === 'ready') {
        storing = true;
        await systemClock.sleep(50);
      }
      return update.call(here.store, record);
    };
    const call = await here.first.call(alice, sid, callOf('count'));
    const outcome = call.outcome();
    await expect.poll(() => storing, { interval: 1 }).toBe(true);
    // On another process: here it would wait for its turn.
    await here.engine('second').delete(alice, sid);
    expect(await outcome).toMatchObject({ code: 'session_deleted' });
    // What died, the second that ended it, and what the replay made.
    await expect.poll(() => here.backend.deleted.length).toBeGreaterThanOrEqual(3);
  });

  test('a constructor that takes too long is aborted', async () => {
    const here = world({ policy: { setupTimeoutMs: 50 } });
    const sid = await reserve(here);
    expect(await codeOf(create(here.first, here, sid, null, { construct_ms: 60_000 }))).toBe('setup_timeout');
    await expect.poll(() => here.backend.givenUp).toEqual([sid]);
    // One that does not listen opens for nobody.
    const deaf = await reserve(here);
    expect(await codeOf(create(here.first, here, deaf, null, { construct_ms: 100, deaf: true }))).toBe('setup_timeout');
    await expect.poll(() => here.backend.deleted).toEqual([deaf]);
  });

  test('a setup that takes too long fails for every kind of request', async () => {
    const here = world({ policy: { setupTimeoutMs: 50 } });
    for (const question of ['prompt', 'messages'] as const) {
      const sid = await reserve(here);
      await create(here.first, here, sid, null, { q: '1+1', setup_ms: 60_000, ready: false });
      expect(await codeOf(here.first[question](alice, sid))).toBe('setup_timeout');
      expect(here.store.records.get(sid)).toMatchObject({ state: 'failed', failureClass: 'infrastructure' });
      expect(await codeOf(here.first.call(alice, sid, callOf('echo')))).toBe('setup_timeout');
      expect(here.backend.executions.get(sid)).toBeUndefined();
    }
  });

  test('a prompt or tools that never come time out, and the session stays usable', async () => {
    const move = movableTime();
    const here = world({ policy: { setupTimeoutMs: 1_000 } });
    const sid = await opened(here);
    await here.first.prompt(alice, sid);
    here.backend.stuck = 'answers';
    const asked = [here.first.prompt(alice, sid), here.first.messages(alice, sid), here.first.taskTools(alice, sid)].map(codeOf);
    await move(1_100);
    expect(await Promise.all(asked)).toEqual(['backend_timeout', 'backend_timeout', 'backend_timeout']);
    expect(await (await here.first.call(alice, sid, callOf('echo', { text: 'x' }))).outcome()).toMatchObject({ type: 'result', ok: true });
  });

  test('an unknown task id, or one of another session, is an error and runs nothing', async () => {
    const here = world();
    const [sid, other] = [await opened(here), await opened(here)];
    const known = await here.first.call(alice, other, callOf('echo', { text: 'x' }));
    await known.outcome();
    for (const taskId of ['f'.repeat(32), known.taskId]) {
      const call = await here.first.call(alice, sid, callOf('echo', {}, taskId));
      expect(call.taskId).toBeNull();
      expect(await call.outcome()).toEqual({ type: 'tool_failed', message: 'unknown task_id' });
    }
    expect(here.backend.executions.get(sid)).toBeUndefined();
  });

  test('an abandoned call does not run', async () => {
    const here = world();
    const sid = await opened(here);
    const call = await here.first.call(alice, sid, callOf('echo'));
    call.abandon();
    expect(await call.outcome()).toMatchObject({ type: 'refused', code: 'call_abandoned' });
    expect(here.backend.executions.get(sid)).toBeUndefined();
  });

  test('a disconnected client does not end a call that another process runs', async () => {
    const here = world();
    const sid = await opened(here);
    const call = await here.first.call(alice, sid, callOf('slow', { n: 100 }));
    const outcome = call.outcome();
    const second = here.engine('second');
    (await second.call(alice, sid, callOf('slow', { n: 100 }, call.taskId))).abandon();
    expect(await outcome).toMatchObject({ type: 'result', ok: true });
    const back = await second.call(alice, sid, callOf('slow', { n: 100 }, call.taskId));
    expect(await back.outcome()).toEqual(await outcome);
    expect(here.backend.executions.get(sid)).toBe(1);
  });

  test('a disconnected client gets its call by the idempotency key, also when it has already returned', async () => {
    const here = world();
    const sid = await opened(here);
    const named = { ...callOf('slow', { n: 20 }), idempotencyKey: 'c5e6e3a2-sent-once-more' };
    const [cut, again] = await Promise.all([here.first.call(alice, sid, named), here.first.call(alice, sid, named)]);
    cut.abandon();
    expect(await again.outcome()).toMatchObject({ type: 'result', ok: true });
    expect(here.backend.executions.get(sid)).toBe(1);
  });

  test('the ledger has the failure class of every outcome', async () => {
    const here = world();
    const sid = await opened(here);
    const classes: Record<string, string | null> = {};
    for (const tool of ['echo', 'nope', 'boom']) {
      const call = await here.first.call(alice, sid, callOf(tool, { text: 'x' }));
      await call.outcome();
      classes[tool] = (await here.ledger.find(call.taskId!))!.failureClass;
    }
    here.backend.forgetAll();
    const call = await here.first.call(alice, sid, callOf('echo'));
    await call.outcome();
    classes['lost'] = (await here.ledger.find(call.taskId!))!.failureClass;
    expect(classes).toEqual({ echo: 'ok', nope: 'policy', boom: 'environment', lost: 'infrastructure' });
  });

  test('a long error text is cut to the length that clients can read', async () => {
    const here = world();
    const sid = await opened(here);
    const call = await here.first.call(alice, sid, callOf('boom', { n: 1_000_000 }));
    const outcome = await call.outcome();
    expect(outcome).toMatchObject({ type: 'tool_failed', message: expect.stringContaining('characters left out') });
    expect((await here.ledger.find(call.taskId!))!.outcome).toEqual(outcome);
  });

  test('a delete during a call ends the call with session_deleted', async () => {
    const here = world();
    const sid = await opened(here);
    const call = await here.first.call(alice, sid, callOf('slow', { n: 10_000 }));
    const outcome = call.outcome();
    await here.first.delete(alice, sid);
    expect(await outcome).toMatchObject({ type: 'refused', code: 'session_deleted' } satisfies Partial<CallOutcome>);
    expect(here.backend.deleted).toEqual([sid]);
    expect(await codeOf(here.first.call(alice, sid, callOf('echo')))).toBe('session_deleted');
  });

  test('a finished call finishes the session, which stays usable', async () => {
    const here = world();
    const sid = await opened(here);
    const call = await here.first.call(alice, sid, callOf('submit'));
    expect(await call.outcome()).toMatchObject({ reward: 1, finished: true });
    await here.first.stop(100);
    expect(here.store.records.get(sid)?.state).toBe('finished');
    expect(await codeOf(here.first.prompt(alice, sid))).toBe('ok');
  });

  test('a group score can be resumed by its task id; a dead or unknown SID is 410', async () => {
    const here = world();
    const sid = await opened(here);
    const candidates = [{ messages: [] }, { messages: [] }];
    const call = await here.first.scoreGroup(alice, sid, { candidates, taskId: null });
    const outcome = await call.outcome();
    expect(outcome).toMatchObject({ type: 'result' });
    expect(await (await here.first.scoreGroup(alice, sid, { candidates, taskId: call.taskId })).outcome()).toEqual(outcome);
    expect(await codeOf(here.first.scoreGroup(alice, 'never-seen', { candidates, taskId: null }))).toBe('session_deleted');
  });
});

describe('expiry', () => {
  test('idle sessions and unused SIDs expire; pinged sessions and those that open or set up do not', async () => {
    const move = movableTime();
    const here = world({ policy: { heartbeatTimeoutMs: 2_000 } });
    here.leases.isAlone = true;
    const [idle, pinged, orphan] = [await opened(here), await opened(here), await reserve(here)];
    here.first.start();
    onTestFinished(() => here.first.stop(0));
    const pings = setInterval(() => void here.first.ping(alice, pinged), 200);
    onTestFinished(() => clearInterval(pings));
    const slow = await reserve(here);
    const opening = create(here.first, here, slow, null, { q: '1+1', construct_ms: 5_300 });
    const held = await reserve(here);
    await create(here.first, here, held, null, { q: '1+1', setup_ms: 5_300, ready: false });
    const prompt = here.first.prompt(alice, held);
    await move(5_500);
    await Promise.all([opening, prompt]);
    for (const sid of [slow, held]) expect(await codeOf(here.first.ping(alice, sid))).toBe('ok');
    expect(await codeOf(here.first.ping(alice, idle))).toBe('session_expired');
    expect(await codeOf(create(here.first, here, orphan))).toBe('session_expired');
    expect(await codeOf(here.first.ping(alice, pinged))).toBe('ok');
    expect(here.backend.deleted).toEqual([idle]);
    expect(here.problems).toEqual([]);
  });
});

describe('several processes', () => {
  test('a late decision about a dead owner does not undo later changes', async () => {
    const move = movableTime();
    const here = world({ owned: true, policy: { deterministic: true } });
    const sid = await opened(here);
    await here.first.prompt(alice, sid);
    await expect.poll(() => here.store.records.get(sid)?.state).toBe('ready');
    here.dead.add('first');
    const [second, third] = [here.engine('second'), here.engine('third')];
    const orphans = await here.store.findOrphans();
    expect(orphans.map((record) => record.sid)).toEqual([sid]);
    await second.locate(alice, sid);
    expect(await second.locate(alice, sid)).toEqual({ here: true });
    await second.prompt(alice, sid);
    // Read before all that.
    let looks = 0;
    here.store.findOrphans = async () => {
      looks += 1;
      return orphans;
    };
    third.start();
    await move(2_100);
    expect(looks).toBeGreaterThan(1);
    await third.stop(0);
    expect(here.store.records.get(sid)).toMatchObject({ state: 'ready', ownerReplicaId: 'second' });
  });

  test('a session is not lost when its environment cannot be read as its process dies', async () => {
    const here = world({ owned: true, policy: { deterministic: true } });
    const sid = await opened(here);
    here.dead.add('first');
    vi.spyOn(here.directory, 'version').mockRejectedValueOnce(new PalestraError('database_unavailable'));
    const second = here.engine('second');
    expect(await codeOf(second.locate(alice, sid))).toBe('database_unavailable');
    expect(await second.locate(alice, sid)).toEqual({ here: true });
    expect(here.store.records.get(sid)).toMatchObject({ state: 'restoring', ownerReplicaId: 'second' });
  });

  test('a session that is pinged on one process is not expired by another, also with a short heartbeat timeout', async () => {
    const move = movableTime();
    const here = world({ policy: { heartbeatTimeoutMs: 1_000 } });
    const second = here.engine('second');
    const sid = await opened(here);
    // The other one has heard of it, too, and not again.
    await second.ping(alice, sid);
    let looks = 0;
    const { findIdle } = here.store;
    here.store.findIdle = async (now) => {
      const idle = await findIdle.call(here.store, now);
      looks += idle.length;
      return idle;
    };
    for (const engine of [here.first, second]) engine.start();
    const pings = setInterval(() => void here.first.ping(alice, sid), 200);
    onTestFinished(() => clearInterval(pings));
    await move(6_000);
    expect(looks).toBeGreaterThan(0);
    expect(await codeOf(here.first.ping(alice, sid))).toBe('ok');
    for (const engine of [here.first, second]) await engine.stop(0);
    expect([here.store.records.get(sid)?.state, here.backend.deleted]).toEqual(['ready', []]);
  });

  test('a session is not expired by another process while a server does not answer to the end of an idle one', async () => {
    const move = movableTime();
    const here = world({ policy: { heartbeatTimeoutMs: 1_000 } });
    const [idle, pinged] = [await opened(here), await opened(here)];
    let answer = () => {};
    const silent = new Promise<void>((resolve) => (answer = resolve));
    const { backend } = here;
    const sessionOf = backend.session.bind(backend);
    vi.spyOn(backend, 'session').mockImplementation((ref) =>
      ref['sid'] === idle ? { ...sessionOf(ref), delete: () => silent } : sessionOf(ref),
    );
    // The first engine has its handle on the episode already.
    const first = here.engine('again');
    const pings = setInterval(() => void first.ping(alice, pinged), 200);
    onTestFinished(() => clearInterval(pings));
    first.start();
    // What another process may not have heard of counts as activity for 20 s.
    await move(26_000);
    expect(here.store.records.get(idle)?.state).toBe('expired');
    const second = here.engine('second');
    second.start();
    await move(40_000);
    expect(here.store.records.get(pinged)?.state).toBe('ready');
    answer();
    for (const engine of [first, second]) await engine.stop(0);
  });

  test('a process that only reserved a session does not end it', async () => {
    const move = movableTime();
    const here = world({ owned: true, policy: { heartbeatTimeoutMs: 4_000 } });
    const second = here.engine('second');
    const sid = await reserve(here);
    await create(second, here, sid);
    const { findIdle } = here.store;
    let found = 0;
    here.store.findIdle = async (now) => {
      const idle = await findIdle.call(here.store, now);
      found += idle.length;
      return idle;
    };
    here.first.start();
    await move(5_500);
    expect(found).toBe(1);
    await here.first.stop(0);
    expect(here.store.records.get(sid)?.state).not.toBe('expired');
    second.start();
    await move(5_500);
    expect(here.store.records.get(sid)?.state).toBe('expired');
    await second.stop(0);
    expect(here.backend.deleted).toEqual([sid]);
  });

  test.each([true, false])(
    'a create of a process that was taken for dead leaves alone what another one opened; owned: %s',
    async (owned) => {
      const here = world({ owned });
      const sid = await reserve(here);
      const late = codeOf(create(here.first, here, sid, null, { q: '1+1', construct_ms: 300 }));
      await expect.poll(() => here.store.records.get(sid)?.state).toBe('starting');
      here.dead.add('first');
      const second = here.engine('second');
      await second.locate(alice, sid);
      // What tells the episodes of two processes apart.
      const { backend } = here;
      const { create: construct } = backend;
      backend.create = async (asked, signal) => ({
        ...(await construct.call(backend, { ...asked, task: { kind: 'spec', spec: { q: '1+1' } } }, signal)),
        of: 'second',
      });
      expect(await codeOf(create(second, here, sid, null, { q: '1+1', construct_ms: 300 }))).toBe('ok');
      expect(await late).toBe('session_moved');
      expect(here.store.records.get(sid)).toMatchObject({ ownerReplicaId: owned ? 'second' : null, ref: { sid, of: 'second' } });
      // Its own process's; on a server at a URL it would be that of the second.
      expect(here.backend.deleted).toEqual(owned ? [sid] : []);
    },
  );

  test('a constructor that fails on a process wrongly considered dead does not undo the work of another process', async () => {
    const here = world();
    const sid = await reserve(here);
    let fail: (error: Error) => void = () => {};
    here.backend.create = () => new Promise((_resolve, reject) => (fail = reject));
    const late = codeOf(create(here.first, here, sid));
    await expect.poll(() => here.store.records.get(sid)?.state).toBe('starting');
    const claimed = here.store.records.get(sid)!;
    await here.store.update({ ...claimed, version: claimed.version + 1, writtenBy: 'second' });
    fail(new PalestraError('environment_failed'));
    expect(await late).toBe('environment_failed');
    expect(here.store.records.get(sid)).toMatchObject({ state: 'starting', writtenBy: 'second' });
  });

  test('an episode is deleted when it cannot be stored', async () => {
    const here = world();
    const sid = await reserve(here);
    const { update } = here.store;
    here.store.update = async (record) => {
      if (record.ref !== null) throw new PalestraError('database_unavailable');
      return update.call(here.store, record);
    };
    expect(await codeOf(create(here.first, here, sid))).toBe('database_unavailable');
    expect(here.store.records.get(sid)).toMatchObject({ state: 'reserved', ref: null });
    expect(here.backend.deleted).toEqual([sid]);
  });

  test('a session that gets calls on two processes after its server restarted is replayed once', async () => {
    const here = world({ policy: { deterministic: true } });
    const sid = await opened(here);
    await (await here.first.call(alice, sid, callOf('count'))).outcome();
    const second = here.engine('second');
    await second.prompt(alice, sid);
    here.backend.forgetAll();
    const calls = await Promise.all([
      here.first.call(alice, sid, callOf('slow', { n: 50 })),
      second.call(alice, sid, callOf('slow', { n: 51 })),
    ]);
    const outcomes = await Promise.all(calls.map((call) => call.outcome()));
    expect(outcomes).toMatchObject([
      { type: 'result', ok: true },
      { type: 'result', ok: true },
    ]);
    expect(here.store.records.get(sid)).toMatchObject({ state: 'ready', ownerReplicaId: null });
    // Once, before the replay and in it; each of the two calls once more.
    expect(here.backend.executions.get(sid)).toBe(4);
  });

  test('a fork that ends while its replay is being stored leaves no episode', async () => {
    const here = world({ policy: { deterministic: true } });
    const source = await opened(here);
    await (await here.first.call(alice, source, callOf('count'))).outcome();
    const { update } = here.store;
    const forks: string[] = [];
    here.store.update = async (record) => {
      if (record.forkedFrom !== null && record.state === 'ready' && forks.push(record.sid) === 1)
        await here.engine('second').delete(alice, record.sid);
      return update.call(here.store, record);
    };
    expect(await codeOf(here.first.fork(alice, { sid: source, atCall: null, recording: null }))).toBe('session_deleted');
    expect(here.store.records.get(forks[0]!)?.state).toBe('closed');
    await expect.poll(() => here.backend.deleted).toEqual(forks);
  });

  test.each([true, false])('a process wrongly considered dead deletes its episodes; deterministic: %s', async (deterministic) => {
    const move = movableTime();
    const here = world({ owned: true, policy: { deterministic, heartbeatTimeoutMs: 2_000 } });
    const [asked, silent] = [await opened(here), await opened(here)];
    for (const sid of [asked, silent]) await expect.poll(() => here.store.records.get(sid)?.state).toBe('ready');
    const second = here.engine('second');
    here.dead.add('first');
    for (const sid of [asked, silent]) await second.locate(alice, sid);
    await second.stop(0);
    here.backend.deleted.length = 0;
    // Its own episodes are still there when it is back.
    here.dead.delete('first');
    await here.first.refreshLocation(alice, asked);
    await expect.poll(() => here.backend.deleted).toEqual([asked]);
    here.first.start();
    await move(5_500);
    expect(here.backend.deleted).toContain(silent);
    await here.first.stop(0);
  });

  test('a session whose constructor runs when its process ends is opened by the next process that gets its request', async () => {
    const here = world({ owned: true, policy: { deterministic: true } });
    const sid = await reserve(here);
    const cut = codeOf(create(here.first, here, sid, null, { q: '1+1', construct_ms: 300 }));
    await expect.poll(() => here.store.records.get(sid)?.state).toBe('starting');
    await here.first.stop(0);
    expect(await cut).toBe('session_moved');
    const second = here.engine('second');
    expect(await second.locate(alice, sid)).toEqual({ here: true });
    expect(await codeOf(create(second, here, sid))).toBe('ok');
  });
});
