import { expect, test } from 'vitest';
import { testCaller } from '../in-process.fixture.ts';
import { SessionCountEstimate } from './session-count-estimate.ts';

const alice = { ...testCaller('alice'), keyId: 'k1', orgId: 'acme' };
const bob = { ...testCaller('bob'), keyId: 'k2', orgId: 'acme' };
const quota = { key: 10, org: 15 };
const one = () => 1;

function world() {
  const stored: { holder: string; orgId: string; count: number }[] = [];
  let now = 0;
  let reads = 0;
  const countOpen = async () => {
    reads += 1;
    return stored;
  };
  const clock = { now: () => now } as ConstructorParameters<typeof SessionCountEstimate>[1];
  const counts = new SessionCountEstimate({ countOpen }, clock, (error) => {
    throw error;
  });
  return { counts, stored, reads: () => reads, pass: (ms: number) => (now += ms) };
}

test('adds the sessions that this process opened since it read the counts', async () => {
  const { counts, stored } = world();
  stored.push({ holder: 'k1', orgId: 'acme', count: 7 });
  expect(await counts.isBelow(alice, quota, one)).toBe(true);
  counts.add(alice);
  expect(await counts.isBelow(alice, quota, one)).toBe(true);
  counts.add(alice);
  expect(await counts.isBelow(alice, quota, one)).toBe(false);
  expect(await counts.isBelow(bob, quota, one)).toBe(true);
  for (let i = 0; i < 5; i += 1) counts.add(bob);
  expect(await counts.isBelow(bob, quota, one)).toBe(false);
  expect(await counts.isBelow(bob, { key: null, org: null }, one)).toBe(true);
});

test('allows sessions again when others end', async () => {
  const { counts, stored, pass } = world();
  stored.push({ holder: 'k1', orgId: 'acme', count: 10 });
  expect(await counts.isBelow(alice, quota, one)).toBe(false);
  stored[0]!.count = 3;
  pass(300);
  expect(await counts.isBelow(alice, quota, one)).toBe(true);
});

test('needs no query far below the quota', async () => {
  const { counts, reads, pass } = world();
  for (let i = 0; i < 200; i += 1) {
    counts.add(alice);
    expect(await counts.isBelow(alice, { key: 20_000, org: 50_000 }, () => 100)).toBe(true);
    pass(10);
  }
  expect(reads()).toBe(1);
});
