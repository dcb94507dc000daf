import { STREAM_EVENTS } from '@palestra/protocol';
import workerUrl from './stream.worker.ts?sharedworker&url';
import { type FromTab, type ToTab } from './wire.ts';

/** A tab says so often that it is still there. */
const ALIVE_MS = 20_000;

interface ScriptPolicy {
  createScriptURL(url: string): string;
}
const factory = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy } }).trustedTypes;
/** The page's CSP takes no plain text as the address of a script; this one is part of the build. */
const policy = factory?.createPolicy('palestra-worker', {
  createScriptURL: (url) => {
    if (new URL(url, location.href).origin !== location.origin) throw new TypeError('A worker comes from this origin alone.');
    return url;
  },
});

let port: MessagePort | undefined;
const listeners = new Set<(message: ToTab) => void>();

function shared(): MessagePort {
  if (port) return port;
  const opened = new SharedWorker(policy?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module', name: 'palestra-stream' }).port;
  opened.addEventListener('message', ({ data }: MessageEvent<ToTab>) => listeners.forEach((listener) => listener(data)));
  opened.start();
  setInterval(() => opened.postMessage({ kind: 'alive' } satisfies FromTab), ALIVE_MS);
  port = opened;
  return opened;
}

/** Where there is no SharedWorker: a connection of this tab's own. */
function own(url: string, listener: (message: ToTab) => void): () => void {
  let failures = 0;
  const source = new EventSource(url);
  source.addEventListener('open', () => {
    failures = 0;
    listener({ url, kind: 'open' });
  });
  source.addEventListener('error', () => {
    failures += 1;
    listener({ url, kind: 'down', failures, closed: source.readyState === EventSource.CLOSED });
  });
  for (const event of STREAM_EVENTS)
    source.addEventListener(event, ({ data }: MessageEvent<string>) => listener({ url, kind: 'event', event, data }));
  return () => source.close();
}

/** Hears a stream of the API, over a connection that all tabs share. Returns the function that stops it. */
export function listen(url: string, listener: (message: ToTab) => void): () => void {
  if (typeof SharedWorker === 'undefined') return own(url, listener);
  const mine = (message: ToTab) => {
    if (message.url === url) listener(message);
  };
  listeners.add(mine);
  const connection = shared();
  connection.postMessage({ kind: 'join', url } satisfies FromTab);
  const leave = () => {
    if (listeners.delete(mine)) connection.postMessage({ kind: 'leave', url } satisfies FromTab);
    removeEventListener('pagehide', leave);
  };
  addEventListener('pagehide', leave);
  return leave;
}
