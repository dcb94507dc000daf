import fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemClock } from '@palestra/kit';
import { PalestraError, type SessionState } from '@palestra/protocol';
import { SessionEngine } from './engine.ts';
import { InProcessBackend, OneEnvironmentDirectory, testCaller } from './in-process.fixture.ts';
import { MemoryAdmissionStore, MemoryCallLedger, MemoryLeases, MemorySessionStore, openBox } from './memory-ports.fixture.ts';
import { isDead, mayFollow } from './state.ts';
import { full } from '../../../tests/support/full.ts';

/**
 * The engine against a model of a session's life: any sequence of requests, on either of two processes, with environments that die in
 * between. The model knows only the table of states; every change that the engine stores is checked against it.
 */
interface Model {
  state: SessionState | 'none';
  /** The environment's process forgot the session; the engine learns it at the next call. */
  processGone: boolean;
  /** Calls that must have run, in this and in replayed episodes. */
  calls: number;
}

interface Real {
  engines: SessionEngine[];
  backend: InProcessBackend;
  store: MemorySessionStore;
  ledger: MemoryCallLedger;
  directory: OneEnvironmentDirectory;
  sid: string;
  changes: { from: SessionState | null; to: SessionState }[];
}

const alice = testCaller('alice');

function world(deterministic: boolean): Real {
  const backend = new InProcessBackend();
  const directory = new OneEnvironmentDirectory(backend, { policy: { deterministic } });
  const store = new MemorySessionStore();
  const ledger = new MemoryCallLedger(store);
  const changes: Real['changes'] = [];
  const engines = ['first', 'second'].map(
    (replicaId) =>
      new SessionEngine({
        store,
        ledger,
        directory,
        replicaId,
        clock: systemClock,
        leases: new MemoryLeases(new Set()),
        box: openBox,
        observer: { sessionChanged: (record, before) => void changes.push({ from: before?.state ?? null, to: record.state }) },
        admission: new MemoryAdmissionStore(store),
        queue: { limit: 10, patienceMs: 1_000 },
        onBackgroundError: (error) => {
          throw error;
        },
      }),
  );
  return { engines, backend, store, ledger, directory, sid: crypto.randomUUID(), changes };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'ok',
    (error: unknown) => (error instanceof PalestraError ? error.code : Promise.reject(error)),
  );

const DEATHS: Partial<Record<SessionState, string>> = { closed: 'session_deleted', lost: 'session_lost', diverged: 'session_diverged' };

/** What a request that needs an open session must answer. */
const expectedOf = (state: Model['state']): string =>
  state === 'none' || state === 'reserved' ? 'session_not_found' : (DEATHS[state] ?? 'ok');

type Command = fc.AsyncCommand<Model, Real>;
const command = (name: string, run: (model: Model, real: Real) => Promise<void>): Command => ({
  check: () => true,
  toString: () => name,
  async run(model, real) {
    await run(model, real);
    // As the processes hear of each other's changes within seconds (SessionReaper, Placement).
    for (const engine of real.engines) await engine.refreshLocation(alice, real.sid);
    const stored = real.store.records.get(real.sid);
    expect(stored?.state ?? 'none').toBe(model.state);
    if (stored !== undefined) expect(stored.endedAt !== null).toBe(isDead(stored.state));
    if (stored?.endedAt) expect(stored.failureClass).not.toBeNull();
    expect(real.backend.executions.get(real.sid) ?? 0).toBe(model.calls);
    for (const { from, to } of real.changes.splice(0)) if (from !== null) expect(mayFollow(from, to), `${from} -> ${to}`).toBe(true);
  },
});

const reserve = (at: number) =>
  command(`reserve on ${at}`, async (model, { engines, sid, directory }) => {
    const code = await codeOf(engines[at]!.reserve(alice, { sid, hosted: directory.hosted, secrets: null, recording: null }));
    expect(code).toBe(model.state === 'none' ? 'ok' : (DEATHS[model.state as SessionState] ?? 'ok'));
    if (model.state === 'none') model.state = 'reserved';
  });

const create = (at: number) =>
  command(`create on ${at}`, async (model, { engines, sid, directory, store }) => {
    const request = {
      sid,
      resolve: async () => directory.hosted,
      variant: async () => null,
      task: { kind: 'spec' as const, spec: { q: '1+1' } },
      toolsetName: null,
      secrets: null,
      recording: null,
    };
    const code = await codeOf(engines[at]!.create(alice, request));
    const open = model.state === 'none' || model.state === 'reserved';
    expect(code).toBe(open ? 'ok' : (DEATHS[model.state as SessionState] ?? 'session_exists'));
    if (!open) return;
    // Setup is followed though nobody asks.
    await until(() => store.records.get(sid)?.state === 'ready');
    model.state = 'ready';
  });

const call = (at: number, tool: 'count' | 'submit') =>
  command(`${tool} on ${at}`, async (model, { engines, sid, ledger }) => {
    const before = ledger.records.size;
    const request = { tool, input: { before }, taskId: null };
    const open = engines[at]!.call(alice, sid, request);
    const code = await codeOf(open);
    const expected = expectedOf(model.state);
    if (expected !== 'ok') return expect(code).toBe(expected) as void;
    if (model.processGone && !deterministicRun) {
      // Known before the stream opens when it died during setup, else the outcome says so.
      const lost = code === 'ok' ? await (await open).outcome() : { code };
      expect(lost).toMatchObject({ code: 'session_lost' });
      model.state = 'lost';
      return;
    }
    expect(code).toBe('ok');
    const outcome = await (await open).outcome();
    expect(outcome).toMatchObject({ type: 'result', ok: true });
    if (model.processGone) {
      // All earlier calls once more, and this one.
      model.calls += before;
      model.processGone = false;
    }
    model.calls += 1;
    model.state = tool === 'submit' || model.state === 'finished' ? 'finished' : 'ready';
    await new Promise(setImmediate);
  });

const ping = (at: number) =>
  command(`ping on ${at}`, async (model, { engines, sid }) => {
    expect(await codeOf(engines[at]!.ping(alice, sid))).toBe(expectedOf(model.state));
  });

const remove = (at: number) =>
  command(`delete on ${at}`, async (model, { engines, sid }) => {
    expect(await codeOf(engines[at]!.delete(alice, sid))).toBe('ok');
    if (model.state !== 'none' && !isDead(model.state)) model.state = 'closed';
  });

const die = command('the process dies', async (model, { backend }) => {
  backend.forgetAll();
  if (['starting', 'ready', 'finished'].includes(model.state)) model.processGone = true;
});

let deterministicRun = false;

test.each([false, true])(
  'any life of a session follows the table; deterministic: %s',
  async (deterministic) => {
    deterministicRun = deterministic;
    const places = fc.constantFrom(0, 1);
    const commands = fc.commands(
      [
        places.map(reserve),
        places.map(create),
        places.map((at) => call(at, 'count')),
        places.map((at) => call(at, 'submit')),
        places.map(ping),
        places.map(remove),
        fc.constant(die),
      ],
      { maxCommands: 12 },
    );
    const runs = full ? 150 : 60;
    let lives = 0;
    await fc.assert(
      fc.asyncProperty(commands, async (plan) => {
        lives += 1;
        await fc.asyncModelRun(
          () => ({ model: { state: 'none', processGone: false, calls: 0 } as Model, real: world(deterministic) }),
          plan,
        );
      }),
      { numRuns: runs, endOnFailure: false },
    );
    expect(lives).toBe(runs);
  },
  60_000,
);
