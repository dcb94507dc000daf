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
