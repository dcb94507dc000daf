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

/** Ended sessions never change: a client that ends a session and asks for it again causes no read of the store. */
const REMEMBERED_DEAD = 1_024;

/** What an HTTP header carries as it is: environments' servers are told the SID in one. */
export const SID = /^[\x21-\x7e](?:[\x20-\x7e]{0,498}[\x21-\x7e])?$/;

type Patch = Partial<Omit<SessionRecord, 'state' | 'version' | 'endedAt'>>;
type From = SessionState | ((record: SessionRecord) => boolean);

/**
 * The live sessions that this process has seen, over the store that all processes share. Reads cost no I/O while a session is
 * known here; what others changed is noticed by the version that every `touch` brings back.
 */
export class SessionRegistry {
  readonly #live = new Map<string, LiveSession>();
  /** Records only: the secrets that a live session has in memory go with it. */
  readonly #dead = new LRUCache<string, SessionRecord>({ max: REMEMBERED_DEAD });
  readonly #loads = new SingleFlight<LiveSession | null>();
  /** Told of an episode beside this process whose session another one has ended or taken over. */
  onTaken: (live: LiveSession, ref: BackendSessionRef) => void = () => {};

  constructor(
    readonly store: SessionStore,
    readonly directory: EnvironmentDirectory,
    readonly clock: Clock,
    readonly replicaId: string,
    readonly box: SecretBox,
    readonly observer: SessionObserver,
  ) {}

  /** The SID that `given` stands for when this caller sends it: that of a session of its organisation, or the one for an id that it chose. */
  sidOf(given: string, caller: Caller): string | Promise<string> {
    if (!SID.test(given) || this.#isOwn(given, caller)) return given;
    const scoped = scopedSid(caller.orgId, given);
    if (this.#isOwn(scoped, caller)) return scoped;
    return this.find(given, caller).then((own) => (own === null ? scoped : given));
  }

  #isOwn(sid: string, { orgId }: Caller): boolean {
    return this.#live.get(sid)?.record.orgId === orgId;
  }

  /** A session of the caller's organisation, dead ones included; null for an unknown SID and for another tenant's. */
  async find(sid: string, caller: Caller): Promise<LiveSession | null> {
    const live = await this.#lookUp(sid);
    return live !== null && live.record.orgId === caller.orgId ? live : null;
  }

  /** A session that `/create` has bound and that is not dead, or the error that says why not. */
  async bound(sid: string, caller: Caller, by: 'request' | 'ping' = 'request'): Promise<LiveSession> {
    const live = this.#live.get(sid) ?? (await this.#lookUp(sid));
    if (live === null || live.record.orgId !== caller.orgId) throw new PalestraError('session_not_found');
    if (isDead(live.record.state)) throw deathError(live.record, this.clock.now());
    if (live.record.ref === null) await this.#opened(live);
    live.lastSeenAt = this.clock.now();
    if (by === 'request') live.lastRequestAt = live.lastSeenAt;
    return live;
  }

  /** As `bound`, where neither the store nor an error is needed for the answer; null elsewhere. */
  known(sid: string, caller: Caller): LiveSession | null {
    const live = this.#live.get(sid);
    if (live === undefined || live.record.orgId !== caller.orgId || live.record.ref === null || isDead(live.record.state)) return null;
    live.lastSeenAt = live.lastRequestAt = this.clock.now();
    return live;
  }

  /** Another process may have opened it: then this one has to look again where it is. */
  async #opened(live: LiveSession): Promise<void> {
    await this.refresh(live);
    const { ref, state, ownerReplicaId } = live.record;
    if (ref === null && state !== 'restoring') throw new PalestraError('session_not_found');
    if (ownerReplicaId !== null && ownerReplicaId !== this.replicaId) throw new PalestraError('session_moved', { retryAfterSeconds: 1 });
  }

  async insert(record: SessionRecord): Promise<LiveSession | null> {
    if (!(await this.store.insert(record))) return null;
    this.observer.sessionChanged?.(record, null);
    const live = new LiveSession(record);
    this.#live.set(record.sid, live);
    return live;
  }

  /** The handle on the backend's session; looked up once per process. */
  async backend(live: LiveSession): Promise<BackendSession> {
    if (live.backend !== null) return live.backend;
    const { ref } = live.record;
    if (ref === null) throw new PalestraError('session_not_found');
    const hosted = await this.hosted(live);
    live.backend ??= hosted.backend.session(ref);
    return live.backend;
  }

  /** The environment version that the session is pinned to. */
  async hosted(live: LiveSession): Promise<HostedEnvironment> {
    const { versionId } = live.record;
    if (versionId === null) throw new PalestraError('session_not_found');
    live.hosted ??= await this.directory.version(versionId);
    return live.hosted;
  }

  /** The session's secrets as its client sent them; empty when there are none. */
  secrets(live: LiveSession): SecretMap {
    return live.record.secrets === null ? {} : this.box.open(live.record.secrets, live.record);
  }

  /** What hides the session's secrets; made once. One whose key we lack hides nothing, because nobody here can give them away. */
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
   * Takes the session to another state, in the store and here. False when the table does not allow it from the state that the
   * session turns out to be in, so that a late event (setup ended, tool finished) never revives a dead session. `from` narrows
   * that to one state, or to what it says of the record: others may have changed more than the state meanwhile.
   */
  async advance(live: LiveSession, to: SessionState, patch: Patch = {}, from: From = () => true): Promise<boolean> {
    const isFrom = typeof from === 'string' ? ({ state }: SessionRecord) => state === from : from;
    const write = live.writes.then(() => this.#advance(live, to, patch, isFrom));
    live.writes = write.catch(() => {});
    return write;
  }

  async #advance(live: LiveSession, to: SessionState, patch: Patch, isFrom: (record: SessionRecord) => boolean): Promise<boolean> {
    for (;;) {
      if (!mayFollow(live.record.state, to) || !isFrom(live.record)) return false;
      const { lastSeenAt, lastRequestAt } = live;
      const failureClass = isDead(to) ? classifyEnd(to, patch.failureClass ?? live.record.failureClass) : undefined;
      const facts = { ...patch, lastSeenAt, lastRequestAt, writtenBy: this.replicaId, ...(failureClass && { failureClass }) };
      const next = transition(live.record, to, this.clock.now(), facts);
      if (await this.store.update(next)) {
        const before = live.record;
        this.#adopt(live, next);
        this.observer.sessionChanged?.(next, before);
        return true;
      }
      const stored = await this.store.find(live.record.sid);
      // A crash of the store may have swallowed what had not opened yet.
      if (stored === null && live.record.ref === null && (await this.store.insert(next))) {
        this.#adopt(live, next);
        return true;
      }
      if (stored === null || stored.version === live.record.version) return false;
      this.#adopt(live, stored);
    }
  }

  /** Reads a session again that somebody else has changed. */
  async refresh(live: LiveSession): Promise<void> {
    const write = live.writes.then(async () => {
      const stored = await this.store.find(live.record.sid);
      if (stored !== null && stored.version > live.record.version) this.#adopt(live, stored);
    });
    live.writes = write.catch(() => {});
    await write;
  }

  /** The live session of a record that the store has just answered; one that was known before is read again when that is newer. */
  async adopt(record: SessionRecord): Promise<LiveSession> {
    const live = this.#live.get(record.sid) ?? new LiveSession(record);
    this.#live.set(record.sid, live);
    if (record.version > live.record.version) await this.refresh(live);
    return live;
  }

  /** Keeps it no longer in memory; the next request reads it again. */
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
    const isTaken = record.writtenBy !== this.replicaId && (isDead(record.state) || record.ownerReplicaId !== this.replicaId);
    if (ref !== null && ownerReplicaId === this.replicaId && isTaken) this.onTaken(live, ref);
    // Another process has opened or restored it elsewhere: what we held leads nowhere.
    if (record.ref !== live.record.ref && JSON.stringify(record.ref) !== JSON.stringify(live.record.ref)) live.backend = null;
    // Erased with its end, they must stay hidden in what is still on its way.
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
    // Those that died elsewhere, or long ago, are read from the store each time.
    if (!isDead(record.state)) this.#live.set(sid, live);
    return live;
  }
}
