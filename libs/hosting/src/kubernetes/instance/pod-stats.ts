import type { InstanceStats } from '../../provider/provider.port.ts';
import { type Cluster, isRefusal } from '../cluster/cluster.ts';
import { HostingError } from '../../provider/hosting-error.ts';

/** Answer of metrics.k8s.io, which not every cluster has. */
interface PodMetrics {
  containers?: { usage?: { cpu?: string; memory?: string } }[];
}

const UNITS: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** `pod`: its name. Null if it does not run, and if the cluster does not measure pods or does not let this service see it. */
export async function readStats(cluster: Cluster, pod: string, signal: AbortSignal): Promise<InstanceStats | null> {
  const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${cluster.namespace}/pods/${pod}`;
  try {
    const metrics = await cluster.request<PodMetrics>({ method: 'GET', path }, signal);
    return statsOf(metrics);
  } catch (error) {
    if (isRefusal(error, 404, 403)) return null;
    // The metrics server is away, or may not be asked: what instances use is not worth an error.
    if (error instanceof HostingError && !signal.aborted) return null;
    throw error;
  }
}

export function statsOf({ containers = [] }: PodMetrics): InstanceStats | null {
  if (containers.length === 0) return null;
  const sum = (of: (usage: { cpu?: string; memory?: string }) => string | undefined) =>
    containers.reduce((total, { usage = {} }) => total + quantity(of(usage) ?? '0'), 0);
  return { cpus: sum(({ cpu }) => cpu), memoryMb: sum(({ memory }) => memory) / 2 ** 20, pids: null };
}

/** The number of a quantity such as `12345n` or `128Mi`; 0 for another text. */
export function quantity(text: string): number {
  const [, number, unit = ''] = /^([\d.]+(?:e[+-]?\d+)?)([A-Za-z]*)$/.exec(text) ?? [];
  return number === undefined ? 0 : Number(number) * (UNITS[unit] ?? 0);
}
