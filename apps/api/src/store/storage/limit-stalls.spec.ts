import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { limitStalls } from './limit-stalls.ts';

const STALL_MS = 200;
const { signal } = new AbortController();

async function* slowly(): AsyncGenerator<Uint8Array> {
  for (let piece = 0; piece < 8; piece += 1) {
    await sleep(STALL_MS / 4);
    yield new Uint8Array(1);
  }
}

test('a body that takes long is no stall while it goes on', async () => {
  const put = async (body: Uint8Array | AsyncIterable<Uint8Array>, stop: AbortSignal) => {
    let bytes = 0;
    for await (const piece of body as AsyncIterable<Uint8Array>) {
      await sleep(STALL_MS / 4, undefined, { signal: stop });
      bytes += piece.length;
    }
    return bytes;
  };
  expect(await limitStalls(slowly(), STALL_MS, signal, put)).toBe(8);
});

test('a store that takes nothing is one', async () => {
  const put = (_body: unknown, stop: AbortSignal) =>
    new Promise<never>((_resolve, reject) => stop.addEventListener('abort', () => reject(stop.reason as Error)));
  for (const body of [slowly(), new Uint8Array(1)])
    await expect(limitStalls(body, STALL_MS, signal, put)).rejects.toMatchObject({ name: 'TimeoutError' });
});
