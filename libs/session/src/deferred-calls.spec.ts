import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '@palestra/kit';
import { SessionEngine } from './engine.ts';
import { InProcessBackend, OneEnvironmentDirectory, testCaller } from './in-process.fixture.ts';
import { MemoryAdmissionStore, MemoryCallLedger, MemoryLeases, MemorySessionStore, openBox } from './memory-ports.fixture.ts';
import type { SecretMap } from './ports/backend.port.ts';
import type { SessionPolicy } from './ports/session-policy.ts';

const alice = testCaller('alice');

async function opened(policy: Partial<SessionPolicy> = {}, secrets: SecretMap | null = null) {
  const directory = new OneEnvironmentDirectory(new InProcessBackend(), { policy });
  const store = new MemorySessionStore();
  const ledger = new MemoryCallLedger(store);
  const [intent, defer] = [vi.spyOn(ledger, 'begin'), vi.spyOn(ledger, 'defer')];
  const engine = new SessionEngine({
    store,
    ledger,
    directory,
    replicaId: 'first',
    clock: systemClock,
    leases: new MemoryLeases(new Set()),
    box: openBox,
    observer: {},
    admission: new MemoryAdmissionStore(store),
    queue: { limit: 100, patienceMs: 60_000 },
    onBackgroundError: (error) => expect.unreachable(String(error)),
  });
  const sid = await engine.reserve(alice, { sid: null, hosted: directory.hosted, secrets, recording: null });
  const task = { kind: 'spec' as const, spec: { q: '1+1' } };
  await engine.create(alice, {
    sid,
    resolve: async () => directory.hosted,
    variant: async () => null,
    task,
    toolsetName: null,
    secrets,
    recording: null,
  });
  const call = async (resumable: boolean, text = 'hi') => {
    if (!resumable) return { outcome: await engine.callWithoutResume(alice, sid, 'echo', { text }) };
    const open = await engine.call(alice, sid, { tool: 'echo', input: { text: 'hi' }, taskId: null });
    return { outcome: await open.outcome() };
  };
  return { call, ledger, intent, defer, store, sid };
}

describe('a call that no client can resume', () => {
  test('runs before its row is written, after the ledger confirmed the owner of the session', async () => {
    const here = await opened();
    for (let n = 0; n < 3; n += 1) expect((await here.call(false)).outcome).toMatchObject({ type: 'result', ok: true });
    expect([here.intent.mock.calls.length, here.defer.mock.calls.length]).toEqual([1, 2]);
    expect(await here.ledger.journal(here.sid)).toHaveLength(3);
  });

  test('waits for its intent when too many rows wait', async () => {
    const here = await opened();
    await here.call(false);
    here.defer.mockReturnValueOnce(null);
    expect((await here.call(false)).outcome).toMatchObject({ type: 'result' });
    expect(here.intent).toHaveBeenCalledTimes(2);
  });

  test('is refused within five seconds after another process took the session', async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    onTestFinished(() => void vi.useRealTimers());
    const here = await opened();
    await here.call(false);
    const record = here.store.records.get(here.sid)!;
    here.store.records.set(here.sid, { ...record, ownerReplicaId: 'second', version: record.version + 1 });
    await vi.advanceTimersByTimeAsync(5_000);
    await expect.poll(() => here.call(false).catch((error: { code: string }) => error.code)).toBe('session_moved');
  });

  test('is written before it runs if a replay may need it', async () => {
    const here = await opened({ deterministic: true });
    for (let n = 0; n < 3; n += 1) await here.call(false);
    expect([here.intent.mock.calls.length, here.defer.mock.calls.length]).toEqual([3, 0]);
  });
});

test('hides a secret of the session in results', async () => {
  const secret = 'open sesame 12345';
  const plain = await opened();
  expect((await plain.call(false, secret)).outcome).toMatchObject({ type: 'result', text: expect.stringContaining(secret) as string });
  const secretive = await opened({}, { KEY: { value: secret } });
  for (let n = 0; n < 2; n += 1) {
    const { outcome } = await secretive.call(false, secret);
    expect(outcome).toMatchObject({ type: 'result', text: expect.stringContaining('[secret:KEY]') as string });
    expect(JSON.stringify(outcome)).not.toContain(secret);
  }
});

test('a call that its client can resume is written before it runs', async () => {
  const here = await opened();
  for (let n = 0; n < 3; n += 1) await here.call(true);
  expect([here.intent.mock.calls.length, here.defer.mock.calls.length]).toEqual([3, 0]);
});
