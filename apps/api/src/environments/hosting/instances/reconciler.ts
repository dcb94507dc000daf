import type { PoolSpec, Provider } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { notifyInstances } from '../hosting-events.ts';
import { CRASH_WINDOW_MS, decide, type Decision, type InstanceFacts } from './decide.ts';
import { EngineViews } from './engine-views.ts';
import { FailureTimes } from './failure-times.ts';
import { InstanceHealth } from './instance-health.ts';
import { InstanceStatsReader } from './instance-stats.ts';
import { InstanceWork, type WorkOptions } from './instance-work.ts';
import {
  drainInstances,
  endInstances,
  insertInstances,
  lockPlacement,
  selectCrashes,
  selectDemand,
  selectLiving,
  type StoredDemand,
  type StoredInstance,
} from './instance.sql.ts';
import { ReconcilerLease } from './reconciler-lease.ts';
import { crashesByVersion, demandOf, factsOf } from './snapshot.ts';
import { wantedPools, WarmPoolWork } from './warm-pool-work.ts';

export interface ReconcilerOptions extends Omit<WorkOptions, 'onChange' | 'provider' | 'onReady'> {
  connectionString: string;
  /** The engines of this process. */
  providers: () => Promise<readonly Provider[]>;
  /** Most instances of one organisation. */
  ceiling: number;
  /** What the instances of a version have in common; null when it was deleted. Throws `HostingError`. */
  poolSpec: (versionId: string) => Promise<PoolSpec | null>;
  onReady?: (coldStartMs: number) => void;
  onEnd?: (state: 'stopped' | 'failed') => void;
  onPass?: (seconds: number) => void;
}

const PASS_MS = 1_000;
/** While nothing runs and nothing is wanted. A notification ends the pause. */
const IDLE_PASS_MS = 10_000;
/** Between two passes, at least. */
const LEAST_GAP_MS = 50;
/** A pass that takes long is followed by a longer pause, so that this process and the engines have time for other work. */
const PAUSE_FACTOR = 4;
/** Locks of one transaction. */
const LOCKS = 200;

/**
 * Makes the instances on the engines those that the sessions need. One process of all runs it, the one with the lease. All that it knows is in
 * the database and on the engines, so another process continues after a crash: it adopts what runs, and removes what no row names.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #lease: ReconcilerLease;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#lease = new ReconcilerLease(options.connectionString);
  }

  start(): void {
    this.#running = this.#lease.hold((lost) => this.#lead(lost), this.#stopping.signal);
  }

  /** Instances go on: another process, or the next start, adopts them. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #lead(lost: AbortSignal): Promise<void> {
    const { logger, logs } = this.#options;
    const pass = new ReconcilerPass(this.#options, () => this.#lease.wake());
    logger.info('this process runs the instances of environments');
    try {
      while (!lost.aborted) {
        const startedAt = performance.now();
        const isIdle = await pass.run().catch((error: unknown) => {
          logger.warn({ err: error }, 'a pass over the instances failed; it is repeated');
          return false;
        });
        const tookMs = performance.now() - startedAt;
        this.#options.onPass?.(tookMs / 1_000);
        await new Promise((resolve) => setTimeout(resolve, LEAST_GAP_MS));
        await this.#lease.next(Math.max(isIdle ? IDLE_PASS_MS : PASS_MS, PAUSE_FACTOR * tookMs), lost);
      }
    } finally {
      await pass.stop();
      await logs.stop();
    }
  }
}

/** What a process with the lease remembers between passes. */
class ReconcilerPass {
  readonly #options: ReconcilerOptions;
  readonly #engines: EngineViews;
  readonly #work: InstanceWork;
  readonly #health: InstanceHealth;
  readonly #stats: InstanceStatsReader;
  readonly #pools: WarmPoolWork;
  readonly #failures = new FailureTimes();
  readonly #idleSince = new Map<string, number>();
  #providers: ReadonlyMap<string, Provider> = new Map();
  #inUse: ReadonlySet<string> = new Set();

  constructor(options: ReconcilerOptions, onChange: () => void) {
    this.#options = options;
    this.#engines = new EngineViews(options.pool, options.logger);
    const provider = (name: string) => this.#providers.get(name) ?? null;
    this.#work = new InstanceWork({ ...options, provider, onChange, onReady: (ms) => options.onReady?.(ms) });
    this.#health = new InstanceHealth((row, endpoint, ms) => this.#work.answers(row, endpoint, ms));
    this.#stats = new InstanceStatsReader(options.pool, options.logger);
    this.#pools = new WarmPoolWork(options);
  }

  /** Whether nothing runs and nothing is wanted. */
  async run(): Promise<boolean> {
    const { pool, ceiling } = this.#options;
    this.#providers = new Map((await this.#options.providers()).map((provider) => [provider.name, provider]));
    // Engines first: whatever they have then has had its row before.
    await this.#engines.refresh([...this.#providers.values()], this.#inUse, Date.now());
    const [rows, crashes] = await Promise.all([selectLiving(pool), selectCrashes(pool, CRASH_WINDOW_MS)]);
    // Sessions that wait are counted last: one that gets its place meanwhile must not count on its instance and in the queue.
    const demand = await selectDemand(pool);
    const now = Date.now();
    const crashed = crashesByVersion(this.#failures.of(crashes, now), rows);
    const versions = demand.map((row) => demandOf(row, crashed.get(row.id), this.#engines.capabilities(row.provider ?? '')));
    const going = rows.filter(({ state }) => state !== 'failed' && state !== 'stopped');
    this.#noteIdle(going, now);
    const facts = going.map((row) => factsOf(row, this.#engines.view(row.provider), this.#seen(row)));
    const decision = decide(versions, facts, ceiling, now);
    const ended = await this.#end(rows, decision);
    const started = await this.#start(demand, decision.start);
    await this.#drain(rows, decision.drain);
    this.#inUse = new Set([...rows, ...started].map(({ provider }) => provider));
    this.#carryOut(rows, ended, decision);
    for (const row of started) this.#work.ensure(row);
    this.#keepPools(demand, wantedPools(versions, facts, ceiling), now);
    return rows.length === 0 && demand.length === 0;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#work.stop(), this.#stats.stop(), this.#pools.stop()]);
  }

  #keepPools(demand: readonly StoredDemand[], replicas: ReadonlyMap<string, number>, now: number): void {
    for (const provider of this.#providers.values()) {
      if (this.#engines.capabilities(provider.name)?.perSession !== true) continue;
      const own = demand.filter((row) => row.provider === provider.name && replicas.has(row.id));
      this.#pools.keep(provider, new Map(own.map(({ id }) => [id, replicas.get(id)!])), now);
    }
  }

  #seen({ id, provider }: StoredInstance): Pick<InstanceFacts, 'idleSince' | 'silent' | 'answersSince'> {
    const answersSince = this.#engines.answersSince(provider);
    return { idleSince: this.#idleSince.get(id) ?? null, silent: this.#health.isSilent(id), answersSince };
  }

  #noteIdle(rows: readonly StoredInstance[], now: number): void {
    const idle = new Set(rows.filter(({ sessions, state }) => sessions === 0 && state === 'ready').map(({ id }) => id));
    for (const id of this.#idleSince.keys()) if (!idle.has(id)) this.#idleSince.delete(id);
    for (const id of idle) if (!this.#idleSince.has(id)) this.#idleSince.set(id, now);
  }

  /** Sessions learn at once that an instance is gone, before its port can belong to another one. */
  async #end(rows: readonly StoredInstance[], { remove }: Decision): Promise<Map<string, Decision['remove'][number]>> {
    const { pool, onEnd, logger } = this.#options;
    if (remove.length === 0) return new Map();
    const versions = new Map(rows.map((row) => [row.id, row.version_id]));
    const done = new Set(await endInstances(pool, remove));
    await notifyInstances(pool, [...new Set(remove.map(({ id }) => versions.get(id)!))]);
    for (const { id, state, reason } of remove.filter((one) => done.has(one.id))) {
      onEnd?.(state);
      if (state === 'failed') logger.warn({ instance: id, version: versions.get(id), reason }, 'an instance failed');
    }
    return new Map(remove.map((one) => [one.id, one]));
  }

  async #start(demand: readonly StoredDemand[], start: Decision['start']): Promise<StoredInstance[]> {
    const versions = new Map(demand.map((row) => [row.id, row]));
    const added = start.flatMap(({ versionId, restarts }) => {
      const { environment_id: environmentId, org_id: orgId, provider } = versions.get(versionId)!;
      return provider === null ? [] : [{ id: newUuid(), environmentId, versionId, orgId, provider, restarts }];
    });
    await insertInstances(this.#options.pool, added);
    return added.map(({ id, environmentId, versionId, orgId, provider, restarts }) => ({
      id,
      environment_id: environmentId,
      version_id: versionId,
      org_id: orgId,
      provider,
      state: 'starting',
      endpoint: null,
      detail: null,
      restarts,
      created_at: Date.now(),
      ready_at: null,
      draining_at: null,
      sessions: 0,
      sessions_left: null,
    }));
  }

  /** Under the lock of placements: afterwards no session that is being placed gets one of these instances. */
  async #drain(rows: readonly StoredInstance[], drain: Decision['drain']): Promise<void> {
    const versions = new Map(rows.map((row) => [row.id, row.version_id]));
    for (let first = 0; first < drain.length; first += LOCKS) {
      const batch = drain.slice(first, first + LOCKS);
      await inTransaction(this.#options.pool, async (client) => {
        await lockPlacement(client, [...new Set(batch.map(({ id }) => versions.get(id)!))]);
        await drainInstances(client, batch);
      });
    }
  }

  #carryOut(rows: readonly StoredInstance[], ended: ReadonlyMap<string, Decision['remove'][number]>, decision: Decision): void {
    const ensure = new Set(decision.ensure);
    const followed: { row: StoredInstance; provider: Provider }[] = [];
    const ready: StoredInstance[] = [];
    for (const row of rows) {
      const end = ended.get(row.id);
      const provider = this.#providers.get(row.provider);
      if (provider !== undefined) followed.push({ row, provider });
      if (end !== undefined) this.#work.remove({ ...row, state: end.state, detail: end.reason ?? row.detail });
      else if (row.state === 'failed' || row.state === 'stopped') this.#work.remove(row);
      else if (row.state === 'starting') this.#bringUp(row, ensure);
      else if (row.state === 'ready') ready.push(row);
    }
    this.#options.logs.follow(followed.filter(({ row }) => this.#engines.view(row.provider)?.has(row.id) === true));
    this.#health.check(ready, Date.now());
    this.#stats.read(ready.flatMap(({ id, provider }) => ({ id, provider: this.#providers.get(provider) })));
    const named = new Set(rows.map(({ id }) => id));
    for (const provider of this.#providers.values()) {
      for (const id of this.#engines.view(provider.name)?.keys() ?? []) if (!named.has(id)) this.#work.removeOrphan(id, provider);
    }
  }

  #bringUp(row: StoredInstance, ensure: ReadonlySet<string>): void {
    const running = this.#engines.view(row.provider)?.get(row.id);
    if (running?.endpoint != null && running.state !== 'exited') this.#work.probe(row, running.endpoint);
    // A process may have died, or an engine failed, in the middle of a start.
    else if (running?.state === 'starting' && !this.#work.isEnsured(row.id)) this.#work.ensure(row);
    // Where its engine is not configured any more, this fails it.
    else if (ensure.has(row.id) || !this.#providers.has(row.provider)) this.#work.ensure(row);
  }
}
