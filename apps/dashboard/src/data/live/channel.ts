import { STREAM_EVENTS } from '@palestra/protocol';
import { openEventSource } from './event-source.ts';
import workerUrl from './stream.worker.ts?sharedworker&url';
import { type FromTab, type ToTab } from './worker-messages.ts';

/** How often a tab tells the worker that it is open. */
const ALIVE_MS = 20_000;

interface ScriptPolicy {
  createScriptURL(url: string): string;
}
const factory = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy } }).trustedTypes;
/** The page's CSP requires a trusted type for the URL of a script. The build sets this URL. */
const policy = factory?.createPolicy('palestra-worker', {
  createScriptURL: (url) => {
    if (new URL(url, location.href).origin !== location.origin) throw new TypeError('A worker must come from this origin.');
    return url;
  },
});

let port: MessagePort | undefined;
const listeners = new Set<(message: ToTab) => void>();
const followed = new Set<string>();

function sharedPort(): MessagePort {
  if (port) return port;
  const opened = new SharedWorker(policy?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module', name: 'palestra-stream' }).port;
  opened.addEventListener('message', ({ data }: MessageEvent<ToTab>) => listeners.forEach((listener) => listener(data)));
  opened.start();
  setInterval(() => opened.postMessage({ kind: 'alive', urls: [...followed] } satisfies FromTab), ALIVE_MS);
  port = opened;
  return opened;
}

/** Follows a stream over a connection of this tab, for browsers without SharedWorker. */
function listenAlone(url: string, listener: (message: ToTab) => void): () => void {
  let failures = 0;
  return openEventSource(url, (source) => {
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
  });
}

/** Follows a stream of the API over a connection that all tabs share. Returns a function that stops it. */
export function listen(url: string, listener: (message: ToTab) => void): () => void {
  if (typeof SharedWorker === 'undefined') return listenAlone(url, listener);
  const forUrl = (message: ToTab) => {
    if (message.url === url) listener(message);
  };
  listeners.add(forUrl);
  followed.add(url);
  const connection = sharedPort();
  connection.postMessage({ kind: 'join', url } satisfies FromTab);
  const leave = () => {
    if (listeners.delete(forUrl)) {
      followed.delete(url);
      connection.postMessage({ kind: 'leave', url } satisfies FromTab);
    }
    removeEventListener('pagehide', leave);
  };
  addEventListener('pagehide', leave);
  return leave;
}
