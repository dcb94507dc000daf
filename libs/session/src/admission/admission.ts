import type { Clock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { AdmissionFacts, AdmissionStore, SlotLimits } from '../ports/admission-store.port.ts';
import type { Caller, HostedEnvironment } from '../ports/directory.port.ts';
import type { SessionObserver } from '../ports/observer.port.ts';
import type { LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { chooseAdmitted, fairOrder } from './admission-order.ts';
import { RoomEstimate } from './room.ts';

export interface AdmissionOptions {
  admission: AdmissionStore;
  clock: Clock;
  replicaId: string;
  observer: SessionObserver;
  /** Clients that may wait for slots of one environment, and how long, milliseconds. */
  queue: { limit: number; patienceMs: number };
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** Where a waiting client stands. `position` counts from 1; `estimatedWaitMs` is null until a slot has become free. */
export interface QueuePlace {
  position: number;
  waiting: number;
  estimatedWaitMs: number | null;
}

interface Waiter {
  live: LiveSession;
  onPlace: (place: QueuePlace) => void;
  wake: () => void;
  leave: (why: Error) => void;
}

/** Sessions that may be reserved beyond the quota, where the queue is shorter. */
const RESERVED_BEYOND = 1_000;
/** How far from a quota the estimate is good enough: what all processes together open while a count is a second old. */
const spareOf = (quota: number): number => Math.max(100, quota / 10);
/** How often slots are looked for while somebody waits here; what is freed on this process is noticed at once. */
const ROUND_MS = 200;
/** Admissions of this long ago still tell how fast slots become free. */
const PACE_WINDOW_MS = 120_000;

/**
 * Slots of environments and quotas of keys and organisations. A session that fits gets its slot at once; the others wait, in an order
 * that is fair among keys, over all API processes. The queue is in the store, so that a client may come back on any process and
 * keeps its place.
 */
export class Admission {
  /** Of a session as many as clients that wait for it. */
  readonly #waiters = new Set<Waiter>();
  readonly #admittedAt = new Map<string, number[]>();
  readonly #room: RoomEstimate;
  #round: Promise<void> | null = null;
  #again = false;
  #cancel: () => void = () => {};

  constructor(
    readonly registry: SessionRegistry,
    readonly options: AdmissionOptions,
  ) {
    this.#room = new RoomEstimate(options.admission, options.clock, (error) => options.onBackgroundError(error, ''));
  }

  /**
   * A session is about to be stored. Throws `capacity_exhausted` when its key or organisation has so many that do not fit, and so many more than
   * the queue takes: reserving costs its client nothing, and a row here.
   */
  async reserve(caller: Caller): Promise<void> {
    const most = caller.maxSessions;
    if (most.key === null && most.org === null) return;
    const beyond = Math.max(RESERVED_BEYOND, this.options.queue.limit);
    if (!(await this.#room.has(caller, most, () => 1 - beyond))) {
      const bounds = [
        most.key !== null && `this API key may have ${most.key} sessions open`,
        most.org !== null && `this organisation may have ${most.org} sessions open`,
      ].filter((bound) => bound !== false);
      const detail = `429: maximum capacity: ${bounds.join(', ')}, and ${beyond} more are reserved. Close some first.`;
      throw new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 10 });
    }
    this.#room.note(caller);
  }

  /**
   * Resolves when the session holds a slot. Rejects with `capacity_exhausted` when too many wait or it took too long, and with the
   * signal's reason when the client left; it keeps its place for its return, but no slot is given to it meanwhile.
   */
  async admit(
    live: LiveSession,
    hosted: HostedEnvironment,
    caller: Caller,
    signal: AbortSignal | null,
    onPlace: (place: QueuePlace) => void,
  ): Promise<void> {
    const limits: SlotLimits = { capacity: hosted.policy.capacity, owned: hosted.owned, ...caller.maxSessions };
    if (live.record.admittedAt !== null || live.record.state !== 'reserved') return;
    // Far from every quota nobody has to wait, and the queue, which is exact, is not asked.
    if (limits.capacity === null && (await this.#room.has(caller, limits, spareOf))) return;
    const { clock, replicaId, observer } = this.options;
    const since = clock.now();
    const place = { queuedAt: live.record.queuedAt ?? since, waitingOn: replicaId, slotLimits: limits, versionId: hosted.versionId };
    if (!(await this.registry.advance(live, 'reserved', place, 'reserved'))) return;
    try {
      await this.#wait(live, hosted, limits, signal, onPlace);
      observer.admitted?.(live.record, { waitedMs: clock.now() - since, outcome: 'admitted' });
    } catch (error) {
      await this.registry.advance(live, 'reserved', { waitingOn: null }, 'reserved');
      const left = signal?.aborted === true;
      observer.admitted?.(live.record, { waitedMs: clock.now() - since, outcome: left ? 'left' : 'refused' });
      throw error;
    }
  }

  /** A slot may have become free. */
  kick(): void {
    if (this.#waiters.size > 0) this.#run();
  }

  /** This process is about to end: its waiting clients are to come back on another one, where they keep their place. */
  drain(): void {
    this.#cancel();
    for (const { leave } of this.#waiters) leave(new PalestraError('shutting_down', { retryAfterSeconds: 1, backendStarting: true }));
  }

  #wait(
    live: LiveSession,
    hosted: HostedEnvironment,
    limits: SlotLimits,
    signal: AbortSignal | null,
    onPlace: (place: QueuePlace) => void,
  ): Promise<void> {
    const { clock, queue } = this.options;
    return new Promise<void>((resolve, reject) => {
      const end = (how: () => void) => {
        if (!this.#waiters.delete(waiter)) return;
        cancelPatience();
        for (const one of [signal, live.signal]) one?.removeEventListener('abort', onAbort);
        how();
      };
      const onAbort = () => end(() => reject((signal?.aborted ? signal.reason : live.signal.reason) as Error));
      const refuse = (why: string) => end(() => reject(exhausted(hosted, limits, why)));
      const waiter: Waiter = {
        live,
        wake: () => end(resolve),
        leave: (why) => end(() => reject(why)),
        onPlace: (place) => {
          if (place.waiting > queue.limit && place.position > queue.limit)
            refuse(`${place.waiting - 1} other sessions are waiting for them already`);
          else onPlace(place);
        },
      };
      const cancelPatience = clock.after(queue.patienceMs, () => refuse(`none became free within ${queue.patienceMs / 1_000} s`));
      this.#waiters.add(waiter);
      if (signal?.aborted || live.signal.aborted) return onAbort();
      for (const one of [signal, live.signal]) one?.addEventListener('abort', onAbort, { once: true });
      this.#run();
    });
  }

  /** One round at a time; what comes meanwhile makes another one. */
  #run(): void {
    if (this.#round !== null) {
      this.#again = true;
      return;
    }
    this.#again = false;
    this.#cancel();
    this.#round = this.#rounds()
      .catch((error: unknown) => this.options.onBackgroundError(error, ''))
      .finally(() => {
        this.#round = null;
        if (this.#again) this.#run();
        else if (this.#waiters.size > 0) this.#cancel = this.options.clock.after(ROUND_MS, () => this.#run());
      });
  }

  async #rounds(): Promise<void> {
    const { admission, clock, replicaId } = this.options;
    await this.#renewLimits();
    const places = new Map<string, QueuePlace>();
    await admission.round((facts) => {
      const admitted = chooseAdmitted(facts);
      const gone = new Set(admitted.map(({ sid }) => sid));
      for (const session of facts.waiting) if (gone.has(session.sid)) this.#notePace(session.versionId);
      const left = facts.waiting.filter(({ sid }) => !gone.has(sid));
      for (const [sid, place] of this.#places({ ...facts, waiting: left })) places.set(sid, place);
      return admitted;
    });
    const now = clock.now();
    for (const { live } of this.#waiters) live.lastSeenAt = live.lastRequestAt = now;
    const settled = new Set(await admission.settled([...new Set([...this.#waiters].map(({ live }) => live.record.sid))]));
    for (const { live, wake } of [...this.#waiters].filter((waiter) => settled.has(waiter.live.record.sid))) {
      await this.registry.refresh(live);
      const { state, admittedAt } = live.record;
      // Another client of the session has left: that was not this one's turn.
      if (state === 'reserved' && admittedAt === null) await this.registry.advance(live, 'reserved', { waitingOn: replicaId }, 'reserved');
      else wake();
    }
    for (const { live, onPlace } of this.#waiters) {
      const place = places.get(live.record.sid);
      if (place !== undefined) onPlace(place);
    }
  }

  /** An environment may have been given more room, or less, since its clients began to wait. */
  async #renewLimits(): Promise<void> {
    const capacities = new Map<string, number | null | undefined>();
    for (const { live } of this.#waiters) {
      const { versionId, slotLimits } = live.record;
      if (versionId === null || slotLimits === null) continue;
      if (!capacities.has(versionId)) {
        const hosted = await this.registry.directory.version(versionId).catch(() => undefined);
        capacities.set(versionId, hosted?.policy.capacity);
      }
      const capacity = capacities.get(versionId);
      if (capacity === undefined || capacity === slotLimits.capacity) continue;
      await this.registry.advance(live, 'reserved', { slotLimits: { ...slotLimits, capacity } }, 'reserved');
    }
  }

  #places(facts: AdmissionFacts): Map<string, QueuePlace> {
    const positions = new Map<string, number>();
    const order = fairOrder(facts);
    const places = new Map<string, QueuePlace>();
    const totals = new Map<string, number>();
    for (const { versionId } of order) totals.set(versionId, (totals.get(versionId) ?? 0) + 1);
    for (const { sid, versionId } of order) {
      const position = (positions.get(versionId) ?? 0) + 1;
      positions.set(versionId, position);
      const paceMs = this.#paceMs(versionId, facts.replicas.length);
      places.set(sid, {
        position,
        waiting: totals.get(versionId)!,
        estimatedWaitMs: paceMs === null ? null : Math.round(position * paceMs),
      });
    }
    return places;
  }

  #notePace(versionId: string): void {
    const now = this.options.clock.now();
    const recent = (this.#admittedAt.get(versionId) ?? []).filter((at) => now - at < PACE_WINDOW_MS);
    this.#admittedAt.set(versionId, [...recent, now]);
  }

  /** Mean time between two admissions; each process sees about its share of them. */
  #paceMs(versionId: string, replicas: number): number | null {
    const now = this.options.clock.now();
    const recent = (this.#admittedAt.get(versionId) ?? []).filter((at) => now - at < PACE_WINDOW_MS);
    if (recent.length < 2) return null;
    return (now - recent[0]!) / recent.length / Math.max(1, replicas);
  }
}

function exhausted(hosted: HostedEnvironment, limits: SlotLimits, why: string): PalestraError {
  const bounds = [
    limits.capacity !== null && `${hosted.owner}/${hosted.name} runs ${limits.capacity} sessions${limits.owned ? ' per replica' : ''}`,
    limits.key !== null && `this API key may have ${limits.key} sessions open`,
    limits.org !== null && `this organisation may have ${limits.org} sessions open`,
  ].filter((bound) => bound !== false);
  return new PalestraError('capacity_exhausted', {
    detail: `429: maximum capacity: ${bounds.join(', ')}; all are taken, and ${why}. Try again later, or raise the limit.`,
    retryAfterSeconds: 10,
  });
}
