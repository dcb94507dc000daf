import { expect, test, vi } from 'vitest';
import { MicroBatcher } from './micro-batcher.ts';

function batcherOf(maxAgeMs: number) {
  const batches: string[][] = [];
  const gates: (() => void)[] = [];
  const batcher = new MicroBatcher<string, string>({
    maxItems: 3,
    maxAgeMs,
    maxQueued: 10,
    concurrency: 1,
    flush: async (items) => {
      batches.push(items);
      await new Promise<void>((resolve) => gates.push(resolve));
      return items.map((item) => item.toUpperCase());
    },
  });
  return { batches, batcher, finish: () => gates.shift()!() };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('what is added soon goes with the turn and takes along what waited', async () => {
  const { batches, batcher, finish } = batcherOf(60_000);
  const first = batcher.add('a');
  await turn();
  expect(batches).toEqual([]);
  const second = batcher.add('b', true);
  await turn();
  expect(batches).toEqual([['a', 'b']]);
  finish();
  expect(await Promise.all([first, second])).toEqual(['A', 'B']);
});

test('the end of a write does not hurry what was added meanwhile and may wait', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const { batches, batcher, finish } = batcherOf(10);
    void batcher.add('a', true);
    await turn();
    void batcher.add('b');
    finish();
    await turn();
    expect(batches).toEqual([['a']]);
    vi.advanceTimersByTime(10);
    expect(batches).toEqual([['a'], ['b']]);
    finish();
  } finally {
    vi.useRealTimers();
  }
});

test('of a batch that fails by some of its items only those are rejected; any other failure is of all', async () => {
  const failing = (isOfItem?: (error: unknown) => boolean) =>
    new MicroBatcher<number, number>({
      maxItems: 9,
      maxAgeMs: 0,
      maxQueued: 10,
      concurrency: 1,
      flush: async (items) => {
        if (items.some((item) => item % 4 === 0)) throw new Error('refused');
        return items.map((item) => item * 10);
      },
      ...(isOfItem && { isOfItem }),
    });
  const ends = async (batcher: MicroBatcher<number, number>) =>
    (await Promise.allSettled([1, 2, 3, 4, 5, 6, 7, 8, 9].map((item) => batcher.add(item)))).map((end) =>
      end.status === 'fulfilled' ? end.value : String(end.reason.message),
    );
  expect(await ends(failing((error) => (error as Error).message === 'refused'))).toEqual([
    10,
    20,
    30,
    'refused',
    50,
    60,
    70,
    'refused',
    90,
  ]);
  expect(new Set(await ends(failing(() => false)))).toEqual(new Set(['refused']));
  expect(new Set(await ends(failing()))).toEqual(new Set(['refused']));
});

test('a full batch does not wait', () => {
  const { batches, batcher } = batcherOf(60_000);
  for (const item of ['a', 'b', 'c', 'd']) void batcher.add(item);
  expect(batches).toEqual([['a', 'b', 'c']]);
});

test('drain waits for what was added before it, and for nothing that comes later', async () => {
  const { batches, batcher, finish } = batcherOf(60_000);
  void batcher.add('a', true);
  await turn();
  void batcher.add('b');
  let drained = false;
  const draining = batcher.drain().then(() => (drained = true));
  finish();
  await turn();
  expect(batches).toEqual([['a'], ['b']]);
  expect(drained).toBe(false);
  void batcher.add('late');
  finish();
  await draining;
  expect(batches).toEqual([['a'], ['b']]);
});
