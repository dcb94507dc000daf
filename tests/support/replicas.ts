import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from './fault-proxy.ts';
import { type Palestra, startPalestra } from './palestra.ts';

export interface Replicas {
  /** Separate processes on one database. */
  all: Palestra[];
  /** The round-robin proxy in front of them. */
  proxy: FaultProxy;
  /** Settings of a client: the URL of the proxy and the key. */
  client: Pick<Palestra, 'url' | 'apiKey' | 'namespace'>;
  stop(): Promise<void>;
}

/** Several built API processes on one database behind a round-robin proxy without sticky sessions. */
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
