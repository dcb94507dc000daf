import type { PoolSpec, Provider } from '@palestra/hosting';
import type { Logger } from 'pino';
import type { InstanceFacts, VersionDemand } from './decide.ts';

interface WarmPoolOptions {
  logger: Logger;
  /** What the instances of a version have in common; null when it was deleted. Throws `HostingError`. */
  poolSpec: (versionId: string) => Promise<PoolSpec | null>;
}

interface Known {
  wanted: string;
  at: number;
  running: Promise<void> | null;
  /** The last failure, which is logged once. */
  failure: string;
}

/** How often the pools of an engine are compared with what is wanted, although nothing else is wanted: settings and secrets may have changed. */
const EVERY_MS = 5_000;
const DEADLINE_MS = 60_000;

/** Makes the warm pools of engines those that are wanted, in the background. */
export class WarmPoolWork {
  readonly #options: WarmPoolOptions;
  readonly #known = new Map<string, Known>();
  readonly #stopping = new AbortController();

  constructor(options: WarmPoolOptions) {
    this.#options = options;
  }

  /** `wanted`: unused instances by version. Pools of other versions are removed. */
  keep(provider: Provider, wanted: ReadonlyMap<string, number>, now: number): void {
    const known = this.#known.get(provider.name) ?? { wanted: '', at: 0, running: null, failure: '' };
    this.#known.set(provider.name, known);
    const text = JSON.stringify([...wanted]);
    if (known.running !== null || (known.wanted === text && now - known.at < EVERY_MS)) return;
    known.wanted = text;
    known.at = now;
    known.running = this.#keep(provider, wanted)
      .catch((error: unknown) => error as Error)
      .then((error) => {
        known.running = null;
        const failure = error?.message ?? '';
        if (failure !== '' && failure !== known.failure && !this.#stopping.signal.aborted)
          this.#options.logger.warn({ err: error, engine: provider.name }, 'a warm pool could not be changed; it is repeated');
        known.failure = failure;
      });
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopped'));
    await Promise.all([...this.#known.values()].flatMap(({ running }) => running ?? []));
  }

  /** The first failure, after all others were tried. */
  async #keep({ warmPools }: Provider, wanted: ReadonlyMap<string, number>): Promise<Error | null> {
    if (warmPools === undefined) return null;
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(DEADLINE_MS)]);
    let failure: Error | null = null;
    const attempt = (work: () => Promise<void>) => work().catch((error: unknown) => void (failure ??= error as Error));
    const found = await warmPools.list(signal);
    for (const versionId of found.filter((id) => !wanted.has(id))) await attempt(() => warmPools.remove(versionId, signal));
    for (const [versionId, replicas] of wanted) {
      await attempt(async () => {
        const spec = await this.#options.poolSpec(versionId);
        if (spec !== null) await warmPools.keep(spec, replicas, signal);
      });
    }
    return failure;
  }
}

/**
 * Unused instances that engines should keep started, by version: those that its settings want, as far as its maximum and `ceiling`, the most
 * instances of one organisation, leave room beside `instances`. Versions without a pool are left out.
 */
export function wantedPools(versions: readonly VersionDemand[], instances: readonly InstanceFacts[], ceiling: number): Map<string, number> {
  const ofVersion = new Map<string, number>();
  const ofOrg = new Map<string, number>();
  for (const { versionId, orgId } of instances) {
    ofVersion.set(versionId, (ofVersion.get(versionId) ?? 0) + 1);
    ofOrg.set(orgId, (ofOrg.get(orgId) ?? 0) + 1);
  }
  const pools = new Map<string, number>();
  for (const { id, orgId, max, pool } of versions) {
    if (pool === null) continue;
    const used = ofOrg.get(orgId) ?? 0;
    const replicas = Math.max(0, Math.min(pool, max - (ofVersion.get(id) ?? 0), ceiling - used));
    ofOrg.set(orgId, used + replicas);
    pools.set(id, replicas);
  }
  return pools;
}
