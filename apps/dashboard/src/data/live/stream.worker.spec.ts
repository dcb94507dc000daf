import { expect, onTestFinished, test, vi } from 'vitest';
import type { FromTab, ToTab } from './worker-messages.ts';

const url = '/v1/stream';

class Source extends EventTarget {
  static readonly OPEN = 1;
  static readonly CLOSED = 2;
  static readonly all: Source[] = [];
  readyState = Source.OPEN;

  constructor() {
    super();
    Source.all.push(this);
  }

  close(): void {
    this.readyState = Source.CLOSED;
  }
}

/** A tab that follows the stream, in a new worker. */
async function joinedTab(): Promise<{ received: ToTab[]; send: (message: FromTab) => void }> {
  Source.all.length = 0;
  vi.resetModules();
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
  let connect: (event: object) => void = () => {};
  vi.stubGlobal('EventSource', Source);
  vi.stubGlobal('addEventListener', (_type: string, listener: typeof connect) => (connect = listener));
  await import('./stream.worker.ts');

  const received: ToTab[] = [];
  let send: (message: FromTab) => void = () => {};
  const tab = {
    postMessage: (message: ToTab) => received.push(message),
    addEventListener: (_type: string, listener: (event: object) => void) => (send = (data) => listener({ data })),
    start: () => {},
  };
  connect({ ports: [tab] });
  send({ kind: 'join', url });
  return { received, send };
}

test('a tab that was taken for closed, because its machine slept, gets its stream again when it is heard of', async () => {
  const { received, send } = await joinedTab();
  send({ kind: 'alive', urls: [url] });
  expect(received).toEqual([{ url, kind: 'open' }]);

  vi.advanceTimersByTime(90_000);
  expect(Source.all.map(({ readyState }) => readyState)).toEqual([Source.CLOSED]);
  for (let time = 0; time < 2; time += 1) send({ kind: 'alive', urls: [url] });
  expect(received).toEqual(Array(2).fill({ url, kind: 'open' }));
  expect(Source.all.map(({ readyState }) => readyState)).toEqual([Source.CLOSED, Source.OPEN]);
});

test('a stream that the browser has given up is opened again, until its tab leaves', async () => {
  const { received, send } = await joinedTab();
  const giveUp = (source: Source) => {
    source.readyState = Source.CLOSED;
    source.dispatchEvent(new Event('error'));
  };
  giveUp(Source.all[0]!);
  expect(received.at(-1)).toEqual({ url, kind: 'down', failures: 1, closed: true });
  vi.advanceTimersByTime(5_000);
  expect(Source.all).toHaveLength(2);
  Source.all[1]!.dispatchEvent(new Event('open'));
  expect(received.at(-1)).toEqual({ url, kind: 'open' });

  giveUp(Source.all[1]!);
  send({ kind: 'leave', url });
  vi.advanceTimersByTime(15_000);
  expect(Source.all).toHaveLength(2);
});
