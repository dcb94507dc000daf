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
/** How often sessions of dead processes are looked for. */
const ORPHANS_MS = 1_000;
/** How late activity reaches the store, at most. Far below any idle timeout. */
const TOUCH_MS = 10_000;
/** How much activity on another process may be missing in the store: a touch waits for up to two sweeps, and one of them may fail. */
const REMOTE_ACTIVITY_LAG_MS = TOUCH_MS + 2 * SWEEP_MS;
/** How often pings of a client are forwarded to the environment's server, whose own idle limit is 15 minutes. */
const UPSTREAM_PING_MS = 30_000;
const PING_DEADLINE_MS = 20_000;
const DELETE_DEADLINE_MS = 60_000;
const BATCH = 500;

/** Keeps used sessions alive, in the store and on the environment's server, and ends idle and orphaned sessions. */
export class SessionReaper {
  readonly #cancels = new Set<() => void>();
  #stopped = false;
  readonly #running = new Set<Promise<void>>();

  constructor(
    readonly registry: SessionRegistry,
    readonly options: ReaperOptions,
    readonly teardown: (live: LiveSession, ignoresErrors?: boolean) => Promise<void>,
  ) {
    registry.onOwnershipLost = (live, ref) => this.#runInBackground(this.#deleteEpisode(live, ref));
  }

  start(): void {
    this.#schedule(SWEEP_MS, () => this.sweep());
    this.#schedule(ORPHANS_MS, () => this.settleOrphans());
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

  /** Takes sessions whose owner died to `lost`, or to `restoring` until a process gets their next request. */
  async settleOrphans(): Promise<void> {
    const orphans = await this.registry.store.findOrphans(BATCH);
    const owners = [...new Set(orphans.flatMap(({ ownerReplicaId }) => ownerReplicaId ?? []))];
    // The store knows only the leases. A process that is late to renew its lease may still answer.
    const alive = await Promise.all(owners.map((owner) => this.options.leases.isAlive(owner)));
    const dead = orphans.filter(({ ownerReplicaId }) => ownerReplicaId === null || !alive[owners.indexOf(ownerReplicaId)]);
    await Promise.all(dead.map(async (record) => this.settleOrphan(await this.registry.adopt(record), record.ownerReplicaId)));
  }

  async settleOrphan(live: LiveSession, deadOwner: string | null): Promise<void> {
    const { state, ownerReplicaId, version } = live.record;
    if (ownerReplicaId !== deadOwner) return;
    // The check of the owner takes a while: another process may have settled and continued the session since.
    const isUnchanged = (record: SessionRecord) => record.version === version;
    if (state === 'reserved')
      return void (await this.registry.advance(live, 'reserved', { ownerReplicaId: null, admittedAt: null }, isUnchanged));
    const policy = await this.registry.hosted(live).then(
      (hosted) => hosted.policy,
      (error: unknown) => {
        // The next look finds out.
        if (error instanceof PalestraError && error.code === 'database_unavailable') throw error;
        return null;
      },
    );
    // Nothing ran yet, and the client will send its request again: the process that gets it opens the session.
    if (state === 'starting' && live.record.ref === null)
      return void (await this.registry.advance(live, 'reserved', { ownerReplicaId: null }, isUnchanged));
    if (policy?.deterministic && state !== 'failed') await this.registry.advance(live, 'restoring', { ownerReplicaId: null }, isUnchanged);
    else if (await this.registry.advance(live, state === 'failed' ? 'closed' : 'lost', { failureClass: 'infrastructure' }, isUnchanged))
      this.releaseUpstream(live);
  }

  /** Frees what a lost session holds on its environment's server, if that can still be reached. */
  releaseUpstream(live: LiveSession): void {
    if (live.record.ref === null) return;
    this.#runInBackground(this.teardown(live, true));
  }

  /** Deletes an episode of this process whose session another process has ended or taken over. */
  async #deleteEpisode(live: LiveSession, ref: BackendSessionRef): Promise<void> {
    const { backend } = await this.registry.hosted(live);
    await backend.session(ref).delete(AbortSignal.timeout(DELETE_DEADLINE_MS));
  }

  #runInBackground(work: Promise<void>): void {
    // The server may be gone, too.
    const running = work.catch(() => {}).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  pingUpstream(live: LiveSession): void {
    const now = this.options.clock.now();
    if (live.backend === null || now - live.upstreamSeenAt < UPSTREAM_PING_MS) return;
    live.upstreamSeenAt = now;
    const deadline = AbortSignal.any([live.signal, AbortSignal.timeout(PING_DEADLINE_MS)]);
    // A failed ping does not end the session: the next request finds out what is wrong.
    live.backend.ping(deadline).catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  #schedule(pauseMs: number, work: () => Promise<void>): void {
    if (this.#stopped) return;
    const cancel = this.options.clock.after(pauseMs, () => {
      this.#cancels.delete(cancel);
      const running = work()
        .catch((error: unknown) => this.options.onBackgroundError(error, ''))
        .finally(() => {
          this.#running.delete(running);
          this.#schedule(pauseMs, work);
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
      // Another process has probably ended it. The store knows.
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

  /** Ends sessions of deleted environments, including waiting ones, and frees what they hold on the servers. */
  async #endDeleted(): Promise<void> {
    const { directory, replicaId } = this.registry;
    const versions = new Set([...this.registry.all()].flatMap(({ record }) => record.versionId ?? []));
    const gone = new Map<string, PalestraError>();
    for (const versionId of versions) {
      await directory.version(versionId).catch((error: unknown) => {
        // Other errors do not mean that the environment was deleted.
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
      if (await this.registry.advance(live, state === 'failed' ? 'closed' : 'lost', { failure })) this.releaseUpstream(live);
    }
  }

  async #expire(): Promise<void> {
    const now = this.options.clock.now();
    const idle = await this.registry.store.findIdle(now, BATCH);
    await Promise.all(
      idle.map(async (record) => {
        const live = await this.registry.adopt(record);
        const { ownerReplicaId } = live.record;
        // The owner ends its sessions, because it has their processes. Any process may get requests of a session without an owner.
        if (ownerReplicaId !== null && ownerReplicaId !== this.registry.replicaId) return;
        const allowance = ownerReplicaId === null && !this.options.leases.alone() ? REMOTE_ACTIVITY_LAG_MS : 0;
        const idleMs = (here: number, stored: number) => now - Math.max(here, stored) - allowance;
        const isIdle =
          idleMs(live.lastSeenAt, record.lastSeenAt) >= record.heartbeatTimeoutMs ||
          idleMs(live.lastRequestAt, record.lastRequestAt) >= record.idleTimeoutMs;
        if (!isIdle) return;
        // In the background: the next sweep stores the activity of other sessions, and must not wait for a server that does not answer.
        if ((await this.registry.advance(live, 'expired')) && live.record.ref !== null) this.#runInBackground(this.teardown(live));
      }),
    );
  }
}
