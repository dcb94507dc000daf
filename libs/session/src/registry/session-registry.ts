import { type Clock, SingleFlight } from '@palestra/kit';
import { PalestraError, type SessionState } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import type { BackendSession, BackendSessionRef, SecretMap } from '../ports/backend.port.ts';
import type { Caller, EnvironmentDirectory, HostedEnvironment } from '../ports/directory.port.ts';
import type { SessionObserver } from '../ports/observer.port.ts';
import type { SecretBox } from '../ports/secret-box.port.ts';
import type { SessionRecord, SessionStore } from '../ports/session-store.port.ts';
import { isDead, mayFollow, transition } from '../state.ts';
import { classifyEnd } from './failure.ts';
import { deathError, LiveSession } from './live-session.ts';
import { scopedSid } from './client-sid.ts';
import { SecretMask } from './secrets.ts';

/** How many ended sessions stay in memory. They never change, so requests for them need not read the store. */
const REMEMBERED_DEAD = 1_024;

/** A SID must fit into an HTTP header, because environments' servers get it in one. */
export const SID = /^[\x21-\x7e](?:[\x20-\x7e]{0,498}[\x21-\x7e])?$/;

type Patch = Partial<Omit<SessionRecord, 'state' | 'version' | 'endedAt'>>;
/** A state, or a condition on the record, that must hold before a change. */
type Condition = SessionState | ((record: SessionRecord) => boolean);

/**
 * The live sessions that this process has seen, in front of the store that all processes share. Reads of a session in memory cost no I/O.
 * The version that every `touch` returns shows changes by other processes.
 */
export class SessionRegistry {
  readonly #live = new Map<string, LiveSession>();
  /** Records only: secrets of a session do not stay in memory after its end. */
  readonly #dead = new LRUCache<string, SessionRecord>({ max: REMEMBERED_DEAD });
  readonly #loads = new SingleFlight<LiveSession | null>();
  /** Called when another process has ended or taken over a session whose episode runs beside this process. */
  onOwnershipLost: (live: LiveSession, ref: BackendSessionRef) => void = () => {};

  constructor(
    readonly store: SessionStore,
    readonly directory: EnvironmentDirectory,
    readonly clock: Clock,
    readonly replicaId: string,
    readonly box: SecretBox,
    readonly observer: SessionObserver,
  ) {}

  /** See `SessionEngine.sidOf`. */
  sidOf(id: string, caller: Caller): string | Promise<string> {
    if (!SID.test(id) || this.#isOfCaller(id, caller)) return id;
    const scoped = scopedSid(caller.orgId, id);
    if (this.#isOfCaller(scoped, caller)) return scoped;
    return this.find(id, caller).then((found) => (found === null ? scoped : id));
  }

  #isOfCaller(sid: string, { orgId }: Caller): boolean {
    return this.#live.get(sid)?.record.orgId === orgId;
  }

  /** A session of the caller's organisation, alive or dead; null for an unknown SID and for sessions of other organisations. */
  async find(sid: string, caller: Caller): Promise<LiveSession | null> {
    const live = await this.#lookUp(sid);
    return live !== null && live.record.orgId === caller.orgId ? live : null;
  }

  /** A session with an open episode. Throws `session_not_found`, `session_moved`, or the error of a dead session. */
  async requireOpen(sid: string, caller: Caller, by: 'request' | 'ping' = 'request'): Promise<LiveSession> {
    const live = this.#live.get(sid) ?? (await this.#lookUp(sid));
    if (live === null || live.record.orgId !== caller.orgId) throw new PalestraError('session_not_found');
    if (isDead(live.record.state)) throw deathError(live.record, this.clock.now());
    if (live.record.ref === null) await this.#assertOpenedHere(live);
    live.lastSeenAt = this.clock.now();
    if (by === 'request') live.lastRequestAt = live.lastSeenAt;
    return live;
  }

  /** As `requireOpen`, without I/O; null when that needs the store or throws. */
  openInMemory(sid: string, caller: Caller): LiveSession | null {
    const live = this.#live.get(sid);
    if (live === undefined || live.record.orgId !== caller.orgId || live.record.ref === null || isDead(live.record.state)) return null;
    live.lastSeenAt = live.lastRequestAt = this.clock.now();
    return live;
  }

  /** Reads a session that is not open in memory. Throws unless this process can serve it. */
  async #assertOpenedHere(live: LiveSession): Promise<void> {
    await this.refresh(live);
    const { ref, state, ownerReplicaId } = live.record;
    if (ref === null && state !== 'restoring') throw new PalestraError('session_not_found');
    if (ownerReplicaId !== null && ownerReplicaId !== this.replicaId) throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
  }

  /** Stores a new session. null when the SID is taken. */
  async insert(record: SessionRecord): Promise<LiveSession | null> {
    if (!(await this.store.insert(record))) return null;
    this.observer.sessionChanged?.(record, null);
    const live = new LiveSession(record);
    this.#live.set(record.sid, live);
    return live;
  }

  /** The backend's handle on the episode. Throws `session_not_found` for a session without one. */
  async backend(live: LiveSession): Promise<BackendSession> {
    if (live.backend !== null) return live.backend;
    const { ref } = live.record;
    if (ref === null) throw new PalestraError('session_not_found');
    const hosted = await this.hosted(live);
    live.backend ??= hosted.backend.session(ref);
    return live.backend;
  }

  /** The environment version to which the session is pinned. Throws `session_lost` when it was deleted. */
  async hosted(live: LiveSession): Promise<HostedEnvironment> {
    const { versionId } = live.record;
    if (versionId === null) throw new PalestraError('session_not_found');
    live.hosted ??= await this.directory.version(versionId);
    return live.hosted;
  }

  /** The session's secrets; empty when there are none. Throws `secrets_invalid` when this process lacks their key. */
  secrets(live: LiveSession): SecretMap {
    return live.record.secrets === null ? {} : this.box.open(live.record.secrets, live.record);
  }

  /** Hides the session's secrets. Without their key it hides nothing, because this process cannot reveal them. */
  mask(live: LiveSession): SecretMask {
    if (live.mask !== null) return live.mask;
    try {
      live.mask = new SecretMask(this.secrets(live));
    } catch {
      live.mask = new SecretMask({});
    }
    return live.mask;
  }

  /**
   * Takes the session to another state, in the store and in memory. False when the session is in a state from which the table does not allow
   * it, or `condition` does not hold. So a late event (setup ended, tool finished) never revives a dead session. Other processes may have
   * changed the session since, so both are checked against the stored record.
   */
  async advance(live: LiveSession, to: SessionState, patch: Patch = {}, condition: Condition = () => true): Promise<boolean> {
    const holds = typeof condition === 'string' ? ({ state }: SessionRecord) => state === condition : condition;
    const write = live.writes.then(() => this.#advance(live, to, patch, holds));
    live.writes = write.catch(() => {});
    return write;
  }

  async #advance(live: LiveSession, to: SessionState, patch: Patch, holds: (record: SessionRecord) => boolean): Promise<boolean> {
    for (;;) {
      if (!mayFollow(live.record.state, to) || !holds(live.record)) return false;
      const { lastSeenAt, lastRequestAt } = live;
      const failureClass = isDead(to) ? classifyEnd(to, patch.failureClass ?? live.record.failureClass) : undefined;
      const changes = { ...patch, lastSeenAt, lastRequestAt, writtenBy: this.replicaId, ...(failureClass && { failureClass }) };
      const next = transition(live.record, to, this.clock.now(), changes);
      if (await this.store.update(next)) {
        const before = live.record;
        this.#adopt(live, next);
        this.observer.sessionChanged?.(next, before);
        return true;
      }
      const stored = await this.store.find(live.record.sid);
      // A crash of the store may have lost a session that was not open yet.
      if (stored === null && live.record.ref === null && (await this.store.insert(next))) {
        this.#adopt(live, next);
        return true;
      }
      if (stored === null || stored.version === live.record.version) return false;
      this.#adopt(live, stored);
    }
  }

  /** Reads a session again that another process may have changed. */
  async refresh(live: LiveSession): Promise<void> {
    const write = live.writes.then(async () => {
      const stored = await this.store.find(live.record.sid);
      if (stored !== null && stored.version > live.record.version) this.#adopt(live, stored);
    });
    live.writes = write.catch(() => {});
    await write;
  }

  /** The live session of a record that was just read. A session in memory is read again if the record is newer. */
  async adopt(record: SessionRecord): Promise<LiveSession> {
    const live = this.#live.get(record.sid) ?? new LiveSession(record);
    this.#live.set(record.sid, live);
    if (record.version > live.record.version) await this.refresh(live);
    return live;
  }

  /** Removes the session from memory. The next request reads it again. */
  forget(live: LiveSession): void {
    this.#live.delete(live.record.sid);
  }

  get(sid: string): LiveSession | undefined {
    return this.#live.get(sid);
  }

  all(): IterableIterator<LiveSession> {
    return this.#live.values();
  }

  #adopt(live: LiveSession, record: SessionRecord): void {
    const { ref, ownerReplicaId } = live.record;
    const isTakenOver = record.writtenBy !== this.replicaId && (isDead(record.state) || record.ownerReplicaId !== this.replicaId);
    if (ref !== null && ownerReplicaId === this.replicaId && isTakenOver) this.onOwnershipLost(live, ref);
    // Another process has opened or restored it: our handle is stale.
    if (record.ref !== live.record.ref && JSON.stringify(record.ref) !== JSON.stringify(live.record.ref)) live.backend = null;
    // The end of a session erases its secrets, but answers that are still being sent must not show them.
    if (record.secrets !== null && record.secrets !== live.record.secrets) live.mask = null;
    live.record = record;
    if (!isDead(record.state)) return;
    this.#live.delete(record.sid);
    this.#dead.set(record.sid, record);
    live.die(deathError(record, this.clock.now()));
  }

  async #lookUp(sid: string): Promise<LiveSession | null> {
    const live = this.#live.get(sid);
    if (live !== undefined) return live;
    const dead = this.#dead.get(sid);
    return dead === undefined ? this.#loads.do(sid, () => this.#load(sid)) : new LiveSession(dead);
  }

  async #load(sid: string): Promise<LiveSession | null> {
    const record = await this.store.find(sid);
    if (record === null) return null;
    const live = this.#live.get(sid) ?? new LiveSession(record);
    // Sessions that another process ended are read from the store each time.
    if (!isDead(record.state)) this.#live.set(sid, live);
    return live;
  }
}
