/**
 * One connection per stream address for all tabs of the browser (dashboard.md section 7): over HTTP/1.1 a browser has six to one origin,
 * and every open page would hold one of them.
 */
import { STREAM_EVENTS } from '@palestra/protocol';
import { type FromTab, type ToTab } from './wire.ts';

/** A tab that has not been heard of for so long is gone: browsers do not say when one closes. */
const SILENT_MS = 60_000;
const SWEEP_MS = 20_000;

interface Stream {
  source: EventSource;
  failures: number;
  tabs: Set<MessagePort>;
}
const streams = new Map<string, Stream>();
const heardOf = new Map<MessagePort, number>();

function open(url: string): Stream {
  const stream: Stream = { source: new EventSource(url), failures: 0, tabs: new Set() };
  const tell = (message: ToTab) => stream.tabs.forEach((tab) => tab.postMessage(message));
  stream.source.addEventListener('open', () => {
    stream.failures = 0;
    tell({ url, kind: 'open' });
  });
  stream.source.addEventListener('error', () => {
    stream.failures += 1;
    tell({ url, kind: 'down', failures: stream.failures, closed: stream.source.readyState === EventSource.CLOSED });
  });
  for (const event of STREAM_EVENTS)
    stream.source.addEventListener(event, ({ data }: MessageEvent<string>) => tell({ url, kind: 'event', event, data }));
  streams.set(url, stream);
  return stream;
}

function leave(tab: MessagePort, url: string): void {
  const stream = streams.get(url);
  if (!stream?.tabs.delete(tab) || stream.tabs.size > 0) return;
  stream.source.close();
  streams.delete(url);
}

function take(tab: MessagePort, message: FromTab): void {
  heardOf.set(tab, Date.now());
  if (message.kind === 'leave') leave(tab, message.url);
  if (message.kind !== 'join') return;
  const known = streams.get(message.url);
  if (known?.source.readyState === EventSource.CLOSED) streams.delete(message.url);
  const stream = streams.get(message.url) ?? open(message.url);
  stream.tabs.add(tab);
  // Who comes later reads everything anew, as after any opening.
  if (stream.source.readyState === EventSource.OPEN) tab.postMessage({ url: message.url, kind: 'open' } satisfies ToTab);
}

setInterval(() => {
  for (const [tab, at] of heardOf) {
    if (Date.now() - at < SILENT_MS) continue;
    heardOf.delete(tab);
    for (const url of streams.keys()) leave(tab, url);
  }
}, SWEEP_MS);

addEventListener('connect', (event) => {
  const tab = (event as MessageEvent).ports[0]!;
  tab.addEventListener('message', ({ data }: MessageEvent<FromTab>) => take(tab, data));
  tab.start();
});
