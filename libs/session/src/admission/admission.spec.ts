import { expect, test } from 'vitest';
import { systemClock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { SessionEngine } from '../engine.ts';
import { InProcessBackend, OneEnvironmentDirectory, testCaller } from '../in-process.fixture.ts';
import { MemoryAdmissionStore, MemoryCallLedger, MemoryLeases, MemorySessionStore, openBox } from '../memory-ports.fixture.ts';

const alice = testCaller('alice');

/** An environment with one slot, which is taken, and two processes. */
async function fullWorld() {
  const directory = new OneEnvironmentDirectory(new InProcessBackend(), { policy: { capacity: 1 } });
  const store = new MemorySessionStore();
  const engine = (replicaId: string) =>
    new SessionEngine({
      store,
      ledger: new MemoryCallLedger(store),
      directory,
      replicaId,
      clock: systemClock,
      leases: new MemoryLeases(new Set()),
      box: openBox,
      observer: {},
      admission: new MemoryAdmissionStore(store, ['first', 'second']),
      queue: { limit: 100, patienceMs: 60_000 },
      onBackgroundError: (error) => {
        throw error;
      },
    });
  const [first, second] = [engine('first'), engine('second')];
  const reserve = () => first.reserve(alice, { sid: null, hosted: directory.hosted, secrets: null, recording: null });
  const taken = await reserve();
  await first.admit(alice, taken, new AbortController().signal, () => {});
  return { store, first, second, taken, waiting: await reserve() };
}

const never = () => new AbortController().signal;

test('a client that leaves one process keeps its position on another one', async () => {
  const { store, first, second, taken, waiting } = await fullWorld();
  const gone = new AbortController();
  const left = first.admit(alice, waiting, gone.signal, () => {}).catch((error: unknown) => error);
  await expect.poll(() => store.records.get(waiting)?.waitingOn).toBe('first');
  let admitted = false;
  const back = second.admit(alice, waiting, never(), () => {}).then(() => (admitted = true));
  await expect.poll(() => store.records.get(waiting)?.waitingOn).toBe('second');
  gone.abort(new PalestraError('call_abandoned'));
  expect(await left).toMatchObject({ code: 'call_abandoned' });
  // Some rounds of the queue.
  await systemClock.sleep(700);
  expect(admitted).toBe(false);
  expect(store.records.get(waiting)).toMatchObject({ waitingOn: 'second', admittedAt: null });
  await first.delete(alice, taken);
  await back;
  expect(store.records.get(waiting)?.admittedAt).not.toBeNull();
});

test('all clients that wait for a session learn that it has a slot, also after one of them has left', async () => {
  const { store, first, taken, waiting } = await fullWorld();
  const gone = new AbortController();
  let admitted = 0;
  const left = first.admit(alice, waiting, gone.signal, () => {}).catch((error: unknown) => error);
  const waits = [1, 2].map(() => first.admit(alice, waiting, never(), () => {}).then(() => (admitted += 1)));
  await expect.poll(() => store.records.get(waiting)?.waitingOn).toBe('first');
  gone.abort(new PalestraError('call_abandoned'));
  expect(await left).toMatchObject({ code: 'call_abandoned' });
  await systemClock.sleep(700);
  expect(admitted).toBe(0);
  await first.delete(alice, taken);
  await Promise.all(waits);
  expect(store.records.get(waiting)?.admittedAt).not.toBeNull();
});
