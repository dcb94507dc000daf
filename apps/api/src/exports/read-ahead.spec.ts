import { describe, expect, test } from 'vitest';
import { readAhead } from './read-ahead.ts';

/** Counts requests; `fails`: the item at which the source throws. */
function source(items: number, fails = Infinity) {
  const state = { requested: 0, closed: false };
  async function* read() {
    try {
      for (let item = 0; item < items; item += 1) {
        state.requested += 1;
        await Promise.resolve();
        if (item === fails) throw new Error(`item ${item}`);
        yield item;
      }
    } finally {
      state.closed = true;
    }
  }
  return { state, items: readAhead(read()) };
}

describe('reading ahead', () => {
  test('yields every item once and in order, and requests one more', async () => {
    const { state, items } = source(5);
    const requests: number[] = [];
    const found: number[] = [];
    for await (const item of items) {
      found.push(item);
      requests.push(state.requested);
    }
    expect(found).toEqual([0, 1, 2, 3, 4]);
    expect(requests).toEqual([2, 3, 4, 5, 5]);
  });

  test('throws a failure after the items before it', async () => {
    const { state, items } = source(5, 2);
    const found: number[] = [];
    const read = async () => {
      for await (const item of items) found.push(item);
    };
    await expect(read()).rejects.toThrow('item 2');
    expect(found).toEqual([0, 1]);
    expect(state.closed).toBe(true);
  });

  test('closes the source when the reader stops, also when the next item fails', async () => {
    const { state, items } = source(5, 1);
    for await (const item of items) {
      expect(item).toBe(0);
      break;
    }
    expect(state).toEqual({ requested: 2, closed: true });
  });
});
