import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AdmissionSnapshot, WaitingSession } from '../ports/admission-store.port.ts';
import { chooseAdmitted, fairOrder } from './admission-order.ts';

const none = { capacity: null, owned: false, key: null, org: null };
const waiting = (sid: string, holder: string, queuedAt: number, limits: Partial<WaitingSession['limits']> = {}): WaitingSession => ({
  sid,
  versionId: 'v',
  holder,
  orgId: 'o',
  limits: { ...none, ...limits },
  waitingOn: 'r1',
  queuedAt,
});
const held = (holder: string, count: number, ownerReplicaId: string | null = null) => ({
  versionId: 'v',
  ownerReplicaId,
  holder,
  orgId: 'o',
  count,
});
const sids = (facts: AdmissionSnapshot) => chooseAdmitted(facts).map(({ sid }) => sid);

describe('the order of the queue', () => {
  test('a key with many waiting sessions does not delay another key', () => {
    const crowd = Array.from({ length: 5 }, (_, index) => waiting(`a${index}`, 'a', index));
    const order = fairOrder({ waiting: [...crowd, waiting('b0', 'b', 10), waiting('b1', 'b', 11)], held: [] });
    expect(order.map(({ sid }) => sid)).toEqual(['a0', 'b0', 'a1', 'b1', 'a2', 'a3', 'a4']);
  });

  test('the holder with fewer slots is first', () => {
    const order = fairOrder({ waiting: [waiting('a0', 'a', 1), waiting('b0', 'b', 2)], held: [held('a', 3), held('b', 1)] });
    expect(order.map(({ sid }) => sid)).toEqual(['b0', 'a0']);
  });
});

describe('slots', () => {
  test('respect the capacity of a server and the quotas of key and organisation', () => {
    const facts = { replicas: ['r1'], held: [held('a', 2)] };
    expect(sids({ ...facts, waiting: [waiting('x', 'b', 1, { capacity: 2 })] })).toEqual([]);
    expect(sids({ ...facts, waiting: [waiting('x', 'b', 1, { capacity: 3 }), waiting('y', 'b', 2, { capacity: 3 })] })).toEqual(['x']);
    expect(sids({ ...facts, waiting: [waiting('x', 'a', 1, { key: 2 }), waiting('y', 'b', 2, { key: 2 })] })).toEqual(['y']);
    expect(sids({ ...facts, waiting: [waiting('x', 'b', 1, { org: 2 })] })).toEqual([]);
  });

  test('a session gets a slot of the process of its client, or else of the process with the fewest sessions', () => {
    const owned = { capacity: 2, owned: true };
    const facts = { replicas: ['r1', 'r2', 'r3'], held: [held('a', 2, 'r1'), held('a', 1, 'r2')] };
    expect(chooseAdmitted({ ...facts, waiting: [{ ...waiting('x', 'b', 1, owned), waitingOn: 'r2' }] })).toEqual([
      { sid: 'x', ownerReplicaId: 'r2' },
    ]);
    expect(chooseAdmitted({ ...facts, waiting: [waiting('x', 'b', 1, owned)] })).toEqual([{ sid: 'x', ownerReplicaId: 'r3' }]);
  });

  test('a capacity of all processes together limits the sum of their sessions', () => {
    const shared = { capacity: 4, owned: true, shared: true };
    const facts = { replicas: ['r1', 'r2'], held: [held('a', 2, 'r1'), held('a', 1, 'r2')] };
    const asked = { ...facts, waiting: [waiting('x', 'b', 1, shared), waiting('y', 'b', 2, shared)] };
    expect(chooseAdmitted(asked)).toEqual([{ sid: 'x', ownerReplicaId: 'r1' }]);
  });

  test('never exceed a limit, and no session waits that fits (property)', () => {
    const limits = fc.record({
      capacity: fc.option(fc.integer({ min: 1, max: 4 })),
      key: fc.option(fc.integer({ min: 1, max: 4 })),
      org: fc.option(fc.integer({ min: 1, max: 6 })),
    });
    const world = fc.tuple(limits, fc.boolean(), fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(20)), { maxLength: 20 }));
    fc.assert(
      fc.property(world, ([limit, owned, asks]) => {
        const replicas = ['r1', 'r2'];
        const sessions = asks.map(([holder, at], index) => waiting(`s${index}`, holder, at, { ...limit, owned }));
        const admitted = chooseAdmitted({ waiting: sessions, held: [], replicas });
        const of = (sid: string) => sessions.find((session) => session.sid === sid)!;
        const count = (matches: (sid: string, owner: string | null) => boolean) =>
          admitted.filter(({ sid, ownerReplicaId }) => matches(sid, ownerReplicaId)).length;
        const total = limit.capacity === null ? Infinity : limit.capacity * (owned ? replicas.length : 1);
        expect(admitted.length).toBeLessThanOrEqual(Math.min(total, limit.org ?? Infinity));
        for (const replica of replicas) expect(count((_sid, owner) => owner === replica)).toBeLessThanOrEqual(limit.capacity ?? Infinity);
        for (const holder of ['a', 'b', 'c']) expect(count((sid) => of(sid).holder === holder)).toBeLessThanOrEqual(limit.key ?? Infinity);
        const full = admitted.length >= Math.min(total, limit.org ?? Infinity);
        for (const session of sessions.filter(({ sid }) => !admitted.some((one) => one.sid === sid))) {
          expect(full || count((sid) => of(sid).holder === session.holder) >= (limit.key ?? Infinity)).toBe(true);
        }
      }),
    );
  });
});
