import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { BlobError, type BlobStore } from '@palestra/blobs';
import { startStore, type StoreWorld } from './sealing.world.ts';

/** An object store that is away for an hour, by a clock of the test's own: everything else is real. */
const TICK_MS = 15_000;
const HOUR_MS = 3_600_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

let world: StoreWorld;
beforeAll(async () => {
  world = await startStore('files');
});
afterEach(() => void vi.useRealTimers());
afterAll(() => world?.server.close());

it('sealing retries with growing delays, never stops, and continues soon after the store is back', async () => {
  const ids = [await world.upload(3), await world.upload(1), await world.upload(400)];
  await world.settled();
  let away = true;
  let puts = 0;
  const store = new Proxy(world.blobs, {
    get: (blobs, name: keyof BlobStore) => {
      if (name === 'put') puts += 1;
      if (away) return () => Promise.reject(new BlobError('unavailable', 'the object store is away'));
      return (blobs[name] as (...args: unknown[]) => unknown).bind(blobs);
    },
  });
  const { sealing } = world.services(store);
  vi.useFakeTimers({ toFake: ['Date'] });
  const tries: number[] = [];
  const start = Date.now();
  for (let passed = 0; passed < HOUR_MS; passed += TICK_MS) {
    vi.setSystemTime(start + passed);
    const before = puts;
    expect(await sealing.seal()).toMatchObject({ sealed: 0, away: true, failed: 0 });
    if (puts > before) tries.push(passed);
  }
  const pauses = tries.slice(1).map((at, index) => at - tries[index]!);
  expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
  expect(pauses.at(-1)).toBe(LONGEST_PAUSE_MS);
  expect(tries.at(-1)).toBeGreaterThanOrEqual(HOUR_MS - LONGEST_PAUSE_MS - TICK_MS);
  // After the first one a try is one rollout, whatever waits.
  expect(puts).toBeLessThan(tries.length + 20);

  away = false;
  let sealed = 0;
  let waited = 0;
  for (; sealed === 0 && waited <= LONGEST_PAUSE_MS; waited += TICK_MS) {
    vi.setSystemTime(start + HOUR_MS + waited);
    ({ sealed } = await world.atRest(() => sealing.seal()));
  }
  expect(sealed).toBe(3);
  vi.useRealTimers();
  expect(await Promise.all(ids.map(world.rowsOf))).toEqual([0, 0, 0]);
  expect(await Promise.all(ids.map(async (id) => (await world.get(id)).messages.length))).toEqual([3, 1, 400]);
});
