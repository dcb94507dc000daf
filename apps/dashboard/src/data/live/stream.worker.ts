/**
 * Shares one connection per stream URL between all tabs of the browser. Over HTTP/1.1 a browser opens at most six connections to one origin,
 * and without this worker every open page would use one of them.
 */
import { STREAM_EVENTS } from '@palestra/protocol';
import { openEventSource } from './event-source.ts';
import { type FromTab, type ToTab } from './worker-messages.ts';

/** A tab that has sent nothing for this long is closed: a worker gets no event when a tab closes. */
const SILENT_MS = 60_000;
const SWEEP_MS = 20_000;

interface Stream {
  isOpen: () => boolean;
  close: () => void;
  failures: number;
  tabs: Set<MessagePort>;
}
const streams = new Map<string, Stream>();
const lastMessageAt = new Map<MessagePort, number>();

function open(url: string): Stream {
  const stream: Stream = { isOpen: () => false, close: () => {}, failures: 0, tabs: new Set() };
  const broadcast = (message: ToTab) => stream.tabs.forEach((tab) => tab.postMessage(message));
  stream.close = openEventSource(url, (source) => {
    stream.isOpen = () => source.readyState === EventSource.OPEN;
    source.addEventListener('open', () => {
      stream.failures = 0;
      broadcast({ url, kind: 'open' });
    });
    source.addEventListener('error', () => {
      stream.failures += 1;
      broadcast({ url, kind: 'down', failures: stream.failures, closed: source.readyState === EventSource.CLOSED });
    });
    for (const event of STREAM_EVENTS)
      source.addEventListener(event, ({ data }: MessageEvent<string>) => broadcast({ url, kind: 'event', event, data }));
  });
  streams.set(url, stream);
  return stream;
}

function leave(tab: MessagePort, url: string): void {
  const stream = streams.get(url);
  if (!stream?.tabs.delete(tab) || stream.tabs.size > 0) return;
  stream.close();
  streams.delete(url);
}

function join(tab: MessagePort, url: string): void {
  const stream = streams.get(url) ?? open(url);
  stream.tabs.add(tab);
  // A tab that joins an open stream refetches everything, as after any opening.
  if (stream.isOpen()) tab.postMessage({ url, kind: 'open' } satisfies ToTab);
}

function receive(tab: MessagePort, message: FromTab): void {
  lastMessageAt.set(tab, Date.now());
  if (message.kind === 'alive') {
    // A tab that was silent because its machine slept was taken for closed.
    for (const url of message.urls) if (!streams.get(url)?.tabs.has(tab)) join(tab, url);
  } else if (message.kind === 'leave') leave(tab, message.url);
  else join(tab, message.url);
}

setInterval(() => {
  for (const [tab, at] of lastMessageAt) {
    if (Date.now() - at < SILENT_MS) continue;
    lastMessageAt.delete(tab);
    for (const url of streams.keys()) leave(tab, url);
  }
}, SWEEP_MS);

addEventListener('connect', (event) => {
  const tab = (event as MessageEvent).ports[0]!;
  tab.addEventListener('message', ({ data }: MessageEvent<FromTab>) => receive(tab, data));
  tab.start();
});
