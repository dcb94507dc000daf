import type { QueryClient } from '@tanstack/react-query';

const refreshEveryMs = 1000;
const pollEveryMs = 5000;
const failuresBeforePolling = 3;
/** Query keys whose data grows while rollouts arrive (first element of the key). */
const growing = ['runs', 'run', 'rollout'];

/**
 * Keeps visible run data current: any event of `/v1/stream` invalidates it, at most once a second; after three failed
 * connections in a row it is polled every 5 s instead. Returns the function that stops it.
 */
export function followStream(client: QueryClient): () => void {
  let pending: ReturnType<typeof setTimeout> | undefined;
  let polling: ReturnType<typeof setInterval> | undefined;
  let failures = 0;

  const refresh = () => {
    pending = undefined;
    void client.invalidateQueries({ predicate: (query) => growing.includes(String(query.queryKey[0])), refetchType: 'active' });
  };
  const soon = () => {
    pending ??= setTimeout(refresh, refreshEveryMs);
  };

  const source = new EventSource('/v1/stream');
  source.addEventListener('open', () => {
    failures = 0;
    // What came before it was open.
    soon();
  });
  for (const type of ['message', 'runs', 'run', 'rollout', 'dirty', 'counters', 'reset']) source.addEventListener(type, soon);
  source.addEventListener('error', () => {
    failures += 1;
    if (failures < failuresBeforePolling && source.readyState !== EventSource.CLOSED) return;
    source.close();
    polling ??= setInterval(refresh, pollEveryMs);
  });

  return () => {
    source.close();
    clearTimeout(pending);
    clearInterval(polling);
  };
}

/**
 * Follows only while the reader looks at the page: a browser has six connections to one origin over HTTP/1.1, and a stream holds one of
 * them in every tab. Returns the function that stops it.
 */
export function whileVisible(follow: () => () => void): () => void {
  let stop: (() => void) | undefined;
  const update = () => {
    if (document.visibilityState === 'visible') stop ??= follow();
    else {
      stop?.();
      stop = undefined;
    }
  };
  document.addEventListener('visibilitychange', update);
  update();
  return () => {
    document.removeEventListener('visibilitychange', update);
    stop?.();
  };
}
