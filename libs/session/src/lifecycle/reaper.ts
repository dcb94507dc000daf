import type { Clock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { ReplicaLeases } from '../ports/call-ledger.port.ts';
import type { BackendSessionRef } from '../ports/backend.port.ts';
import type { SessionActivity, SessionRecord } from '../ports/session-store.port.ts';
import { type LiveSession, TOMBSTONE_MS } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';

export interface ReaperOptions {
  clock: Clock;
  leases: Pick<ReplicaLeases, 'isAlive' | 'alone'>;
  onBackgroundError: (error: unknown, sid: string) => void;
}

const SWEEP_MS = 5_000;
/** Sessions of a dead process are typed by the others within its lease and this. */
const ORPHANS_MS = 1_000;
/** Activity reaches the store at most this late; far below any idle timeout. */
const TOUCH_MS = 10_000;
/** What another process may have heard of a session, and has not told the store: a touch that came with the sweep after the next, and one sweep that failed. */
const HEARD_ELSEWHERE_MS = TOUCH_MS + 2 * SWEEP_MS;
/** The environment's server hears of a session that only pings this often (its own idle limit is 15 minutes). */
const UPSTREAM_PING_MS = 30_000;
const PING_DEADLINE_MS = 20_000;
const GIVE_BACK_DEADLINE_MS = 60_000;
const BATCH = 500;

/** Keeps living sessions alive, in the store and upstream, and ends those that nobody asks for any more. */
export class SessionReaper {
  readonly #cancels = new Set<() => void>();
  #stopped = false;
  readonly #running = new Set<Promise<void>>();

  constructor(
    readonly registry: SessionRegistry,
    readonly options: ReaperOptions,
    readonly teardown: (live: LiveSession, quietly?: boolean) => Promise<void>,
  ) {
    registry.onTaken = (live, ref) => this.#keep(this.#giveBack(live, ref));
  }

  start(): void {
    this.#every(SWEEP_MS, () => this.sweep());
    this.#every(ORPHANS_MS, () => this.settleOrphans());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#cancels) cancel();
    await Promise.all(this.#running);
  }

  async sweep(): Promise<void> {
    await this.#touch();
    await this.#expire();
    await this.#endDeleted();
    await this.registry.store.purge(this.options.clock.now() - TOMBSTONE_MS);
  }

  /** Sessions whose owner died: `lost`, or waiting to be restored by whoever gets their next request. */
  async settleOrphans(): Promise<void> {
    const orphans = await this.registry.store.findOrphans(BATCH);
    const owners = [...new Set(orphans.flatMap(({ ownerReplicaId }) => ownerReplicaId ?? []))];
    // The store knows of leases alone: a process that is late to renew its own may still answer.
    const alive = await Promise.all(owners.map((owner) => this.options.leases.isAlive(owner)));
    const dead = orphans.filter(({ ownerReplicaId }) => ownerReplicaId === null || !alive[owners.indexOf(ownerReplicaId)]);
    await Promise.all(dead.map(async (record) => this.settleOrphan(await this.registry.adopt(record), record.ownerReplicaId)));
  }

  async settleOrphan(live: LiveSession, deadOwner: string | null): Promise<void> {
    const { state, ownerReplicaId, version } = live.record;
    if (ownerReplicaId !== deadOwner) return;
    // To find out whether its owner lives takes a while: others may have settled it since, and somebody gone on with it.
    const isStill = (record: SessionRecord) => record.version === version;
    if (state === 'reserved')
      return void (await this.registry.advance(live, 'reserved', { ownerReplicaId: null, admittedAt: null }, isStill));
    const policy = await this.registry.hosted(live).then(
      (hosted) => hosted.policy,
      () => null,
    );
    // Nothing ran yet, and its client will ask again: whoever is asked opens it.
    if (state === 'starting' && live.record.ref === null)
      return void (await this.registry.advance(live, 'reserved', { ownerReplicaId: null }, isStill));
    if (policy?.deterministic && state !== 'failed') await this.registry.advance(live, 'restoring', { ownerReplicaId: null }, isStill);
    else if (await this.registry.advance(live, state === 'failed' ? 'closed' : 'lost', { failureClass: 'infrastructure' }, isStill))
      this.forsake(live);
  }

  /** What a lost session holds on its environment's server is given back, where that can still be reached. */
  forsake(live: LiveSession): void {
    if (live.record.ref === null) return;
    this.#keep(this.teardown(live, true));
  }

  /** Whoever took this process for dead could not reach it. */
  async #giveBack(live: LiveSession, ref: BackendSessionRef): Promise<void> {
    const { backend } = await this.registry.hosted(live);
    await backend.session(ref).delete(AbortSignal.timeout(GIVE_BACK_DEADLINE_MS));
  }

  #keep(work: Promise<void>): void {
    // What is not there any more cannot be reached.
    const running = work.catch(() => {}).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  pingUpstream(live: LiveSession): void {
    const now = this.options.clock.now();
    if (live.backend === null || now - live.upstreamSeenAt < UPSTREAM_PING_MS) return;
    live.upstreamSeenAt = now;
    const deadline = AbortSignal.any([live.signal, AbortSignal.timeout(PING_DEADLINE_MS)]);
    // A failed ping proves nothing: the next request that matters will say what is wrong.
    live.backend.ping(deadline).catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  #every(pauseMs: number, work: () => Promise<void>): void {
    if (this.#stopped) return;
    const cancel = this.options.clock.after(pauseMs, () => {
      this.#cancels.delete(cancel);
      const running = work()
        .catch((error: unknown) => this.options.onBackgroundError(error, ''))
        .finally(() => {
          this.#running.delete(running);
          this.#every(pauseMs, work);
        });
      this.#running.add(running);
    });
    this.#cancels.add(cancel);
  }

  async #touch(): Promise<void> {
    const now = this.options.clock.now();
    const seen: SessionActivity[] = [];
    for (const live of this.registry.all()) {
      if (live.isBusy) live.lastSeenAt = live.lastRequestAt = now;
      // Ended elsewhere, most likely; the store knows.
      if (now - live.lastSeenAt > 2 * live.record.heartbeatTimeoutMs) {
        if (live.record.ownerReplicaId === this.registry.replicaId) await this.registry.refresh(live);
        this.registry.forget(live);
      }
      if (live.lastSeenAt <= live.touchedAt || now - live.touchedAt < TOUCH_MS) continue;
      live.touchedAt = now;
      seen.push({ sid: live.record.sid, seenAt: live.lastSeenAt, requestAt: live.lastRequestAt });
    }
    if (seen.length === 0) return;
    const stored = await this.registry.store.touch(seen);
    await Promise.all(
      stored.map(async ({ sid, version }) => {
        const live = this.registry.get(sid);
        if (live !== undefined && version > live.record.version) await this.registry.refresh(live);
      }),
    );
  }

  /** Sessions of environments that were deleted, waiting ones too, and what they hold on the servers of those. */
  async #endDeleted(): Promise<void> {
    const { directory, replicaId } = this.registry;
    const versions = new Set([...this.registry.all()].flatMap(({ record }) => record.versionId ?? []));
    const gone = new Map<string, PalestraError>();
    for (const versionId of versions) {
      await directory.version(versionId).catch((error: unknown) => {
        // Anything else says that nobody knows.
        if (error instanceof PalestraError && error.code === 'session_lost') gone.set(versionId, error);
      });
    }
    if (gone.size === 0) return;
    const ended = [...this.registry.all()].filter(({ record }) => record.versionId !== null && gone.has(record.versionId));
    for (const live of ended) {
      const { state, ownerReplicaId, versionId } = live.record;
      if (ownerReplicaId !== null && ownerReplicaId !== replicaId) continue;
      const { code, status, message: detail } = gone.get(versionId!)!;
      const failure = live.record.failure ?? { code, status, detail };
      if (await this.registry.advance(live, state === 'failed' ? 'closed' : 'lost', { failure })) this.forsake(live);
    }
  }

  async #expire(): Promise<void> {
    const now = this.options.clock.now();
    const idle = await this.registry.store.findIdle(now, BATCH);
    await Promise.all(
      idle.map(async (record) => {
        const live = await this.registry.adopt(record);
        const { ownerReplicaId } = live.record;
        // Its owner ends it, and has the process that must be told. Requests and pings of a session without an owner may be anywhere.
        if (ownerReplicaId !== null && ownerReplicaId !== this.registry.replicaId) return;
        const allowance = ownerReplicaId === null && !this.options.leases.alone() ? HEARD_ELSEWHERE_MS : 0;
        const quiet = (here: number, stored: number) => now - Math.max(here, stored) - allowance;
        const silent =
          quiet(live.lastSeenAt, record.lastSeenAt) >= record.heartbeatTimeoutMs ||
          quiet(live.lastRequestAt, record.lastRequestAt) >= record.idleTimeoutMs;
        if (!silent) return;
        if ((await this.registry.advance(live, 'expired')) && live.record.ref !== null) await this.teardown(live);
      }),
    );
  }
}
