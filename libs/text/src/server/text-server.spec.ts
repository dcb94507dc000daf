import { expect, test } from 'vitest';
import { systemClock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { type BackendSession, SecretMask, SessionEngine } from '@palestra/session';
import { InProcessBackend, OneEnvironmentDirectory, testCaller } from '../../../session/src/in-process.fixture.ts';
import {
  MemoryAdmissionStore,
  MemoryCallLedger,
  MemoryLeases,
  MemorySessionStore,
  openBox,
} from '../../../session/src/memory-ports.fixture.ts';
import { TextServer } from './text-server.ts';
import type { TextOutcome, TextStore, TextTurn } from './text-store.port.ts';
import type { TextConfig } from './turn.ts';

/** Infrastructure failures during turns, on a real engine in memory. */
const alice = testCaller('alice');
const COUNT = '<tool_call>{"name": "count"}</tool_call>';

class MemoryTextStore implements TextStore {
  readonly configs = new Map<string, TextConfig>();
  readonly turns = new Map<string, (TextTurn & { outcome: TextOutcome | null })[]>();

  async insert(sid: string, _orgId: string, config: TextConfig) {
    if (!this.configs.has(sid)) this.configs.set(sid, config);
  }
  async read(sid: string, turn: number | null) {
    const config = this.configs.get(sid);
    const turns = this.turns.get(sid) ?? [];
    if (config === undefined) return null;
    return { config, mask: new SecretMask({}), last: turns.at(-1) ?? null, stored: turns.find((one) => one.turn === turn) ?? null };
  }
  async begin(sid: string, turn: Omit<TextTurn, 'settled'>, outcome: TextOutcome | null) {
    const turns = this.turns.get(sid) ?? [];
    if (turns.some((one) => one.turn === turn.turn || (one.taskId !== null && one.taskId === turn.taskId))) return false;
    this.turns.set(sid, [...turns, { ...turn, settled: outcome !== null, outcome }]);
    return true;
  }
  async settle(sid: string, turn: number, outcome: TextOutcome) {
    const found = this.turns.get(sid)!.find((one) => one.turn === turn)!;
    Object.assign(found, { settled: true, outcome: found.outcome ?? outcome });
  }
  async release(sid: string, turn: number) {
    this.turns.set(
      sid,
      this.turns.get(sid)!.filter((one) => one.turn !== turn || one.settled),
    );
  }
  async totals(sid: string) {
    const turns = this.turns.get(sid) ?? [];
    const rewards = turns.flatMap(({ outcome }) => (outcome?.counted ? [outcome.reward] : []));
    return { turns: turns.length, done: turns.at(-1)?.outcome?.done === true, rewards };
  }
}

/** Errors of the next calls. */
class FlakyBackend extends InProcessBackend {
  failures: ('backend_unreachable' | 'backend_timeout' | 'session_lost')[] = [];

  override session(ref: { [key: string]: unknown }): BackendSession {
    const session = super.session(ref);
    const call: BackendSession['call'] = async (request, signal) => {
      const failure = this.failures.shift();
      if (failure !== undefined) throw new PalestraError(failure);
      return session.call(request, signal);
    };
    return { ...session, call };
  }
}

async function opened() {
  const backend = new FlakyBackend();
  const directory = new OneEnvironmentDirectory(backend);
  const dead = new Set<string>();
  const store = new MemorySessionStore(dead);
  const ledger = new MemoryCallLedger(store);
  const engine = new SessionEngine({
    store,
    ledger,
    directory,
    replicaId: 'only',
    clock: systemClock,
    leases: new MemoryLeases(dead),
    box: openBox,
    observer: {},
    admission: new MemoryAdmissionStore(store),
    queue: { limit: 10, patienceMs: 1_000 },
    onBackgroundError: () => {},
  });
  const sid = await engine.reserve(alice, { sid: null, hosted: directory.hosted, secrets: null, recording: null });
  const task = { kind: 'index', split: 'train', index: 0 } as const;
  const none = { toolsetName: null, secrets: null, recording: null };
  await engine.create(alice, { sid, resolve: async () => directory.hosted, variant: async () => null, task, ...none });
  const text = new TextServer(engine, new MemoryTextStore());
  const { config } = await text.prepare(alice, sid, { parse: 'tool_call', maxTurns: 9, environment: 'acme/math' });
  await text.begin(alice, sid, config, []);
  const step = (words: string, turn: number | null = null) => text.step(alice, sid, { text: words, turn, waitMs: 5_000 });
  return { backend, dead, text, ledger, sid, step };
}

test('does not count a turn while the server is unreachable and plays it later', async () => {
  const { backend, text, sid, step } = await opened();
  backend.failures = ['backend_unreachable', 'backend_unreachable'];
  for (let time = 0; time < 2; time += 1) await expect(step(COUNT, 1)).rejects.toMatchObject({ code: 'backend_unreachable', status: 503 });
  expect(await text.metrics(alice, sid)).toMatchObject({ turns: 0, num_rewards: 0 });
  expect(await step(COUNT, 1)).toMatchObject({ turn: 1, observations: [{ content: '<tool_response>\ncall 1\n</tool_response>' }] });
  expect(backend.executions.get(sid)).toBe(1);
});

test('does not repeat a call that may have run', async () => {
  const { backend, sid, step } = await opened();
  backend.failures = ['backend_timeout'];
  for (let time = 0; time < 2; time += 1) await expect(step(COUNT, 1)).rejects.toMatchObject({ code: 'backend_timeout' });
  await expect(step(COUNT, 2)).rejects.toMatchObject({ code: 'turn_conflict' });
  expect(backend.executions.get(sid)).toBeUndefined();
});

test('answers every turn of a lost session with its error', async () => {
  const { backend, step } = await opened();
  await step(COUNT, 1);
  backend.failures = ['session_lost'];
  await expect(step(COUNT, 2)).rejects.toMatchObject({ code: 'session_lost', status: 410 });
  await expect(step('no call', 3)).rejects.toBeInstanceOf(PalestraError);
});

test('continues a turn after its limit and does not start an unnumbered one behind it', async () => {
  const { text, backend, sid } = await opened();
  const slow = (waitMs: number, turn: number | null) =>
    text.step(alice, sid, { text: '<tool_call>{"name": "slow", "arguments": {"n": 150}}', turn, waitMs });
  const late = slow(20, 1);
  const behind = slow(40, null);
  await expect(late).rejects.toMatchObject({ code: 'turn_running', retryable: true });
  await expect(behind).rejects.toMatchObject({ code: 'turn_running' });
  expect(await slow(5_000, 1)).toMatchObject({ turn: 1 });
  expect(await text.metrics(alice, sid)).toMatchObject({ turns: 1 });
  expect(backend.executions.get(sid)).toBe(1);
});

test('runs a turn that equals the last one after a crash', async () => {
  const { backend, dead, ledger, sid, step } = await opened();
  await step(COUNT, 1);
  dead.add('before');
  const [first] = ledger.records.values();
  Object.assign(first!, { replicaId: 'before', outcome: null, failureClass: null, endedAt: null });
  expect(await step(COUNT, 2)).toMatchObject({ turn: 2, observations: [{ content: '<tool_response>\ncall 2\n</tool_response>' }] });
  expect(backend.executions.get(sid)).toBe(2);
});
