import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from './fault-proxy.ts';
import { type Palestra, startPalestra } from './palestra.ts';

export interface Replicas {
  /** Each a process of its own, on one database. */
  all: Palestra[];
  /** In front of them, round robin. */
  proxy: FaultProxy;
  /** What a client needs: the proxy's URL and the key. */
  client: Pick<Palestra, 'url' | 'apiKey' | 'namespace'>;
  stop(): Promise<void>;
}

/** Several built API processes on one database behind a round-robin proxy without stickiness. */
export async function startReplicas(
  count: number,
  options: { env?: Record<string, string>; proxy?: Omit<FaultProxyOptions, 'targets'>; databaseUrl?: string } = {},
): Promise<Replicas> {
  const env = { PALESTRA_SECRET_KEY: 'c2hhcmVkIGJ5IGFsbCByZXBsaWNhcyBvZiB0aGUgdGVzdHM=', ...options.env };
  const first = await startPalestra({ env: { ...env, ...(options.databaseUrl && { DATABASE_URL: options.databaseUrl }) } });
  const others = await Promise.all(
    Array.from({ length: count - 1 }, () => startPalestra({ env: { ...env, DATABASE_URL: first.databaseUrl! } })),
  );
  const all = [first, ...others];
  const proxy = await startFaultProxy({ ...options.proxy, targets: all.map(({ port }) => port) });
  return {
    all,
    proxy,
    client: { url: proxy.url, apiKey: first.apiKey, namespace: first.namespace },
    async stop() {
      await proxy.close();
      await Promise.all(all.map((replica) => replica.stop()));
    },
  };
}
