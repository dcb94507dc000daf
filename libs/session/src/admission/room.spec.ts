import { expect, test } from 'vitest';
import { testCaller } from '../in-process.fixture.ts';
import { RoomEstimate } from './room.ts';

const alice = { ...testCaller('alice'), keyId: 'k1', orgId: 'acme' };
const bob = { ...testCaller('bob'), keyId: 'k2', orgId: 'acme' };
const quota = { key: 10, org: 15 };
const one = () => 1;

function world() {
  const stored: { holder: string; orgId: string; count: number }[] = [];
  let now = 0;
  let reads = 0;
  const living = async () => {
    reads += 1;
    return stored;
  };
  const clock = { now: () => now } as ConstructorParameters<typeof RoomEstimate>[1];
  const room = new RoomEstimate({ living }, clock, (error) => {
    throw error;
  });
  return { room, stored, reads: () => reads, pass: (ms: number) => (now += ms) };
}

test('counts what other processes stored and what this one opened since', async () => {
  const { room, stored } = world();
  stored.push({ holder: 'k1', orgId: 'acme', count: 7 });
  expect(await room.has(alice, quota, one)).toBe(true);
  room.note(alice);
  expect(await room.has(alice, quota, one)).toBe(true);
  room.note(alice);
  expect(await room.has(alice, quota, one)).toBe(false);
  expect(await room.has(bob, quota, one)).toBe(true);
  for (let i = 0; i < 5; i += 1) room.note(bob);
  expect(await room.has(bob, quota, one)).toBe(false);
  expect(await room.has(bob, { key: null, org: null }, one)).toBe(true);
});

test('finds room again when sessions end', async () => {
  const { room, stored, pass } = world();
  stored.push({ holder: 'k1', orgId: 'acme', count: 10 });
  expect(await room.has(alice, quota, one)).toBe(false);
  stored[0]!.count = 3;
  pass(300);
  expect(await room.has(alice, quota, one)).toBe(true);
});

test('costs no query far from the quota', async () => {
  const { room, reads, pass } = world();
  for (let i = 0; i < 200; i += 1) {
    room.note(alice);
    expect(await room.has(alice, { key: 20_000, org: 50_000 }, () => 100)).toBe(true);
    pass(10);
  }
  expect(reads()).toBe(1);
});
