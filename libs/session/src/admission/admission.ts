import type { Clock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { AdmissionSnapshot, AdmissionStore, SlotLimits } from '../ports/admission-store.port.ts';
import type { Caller, HostedEnvironment } from '../ports/directory.port.ts';
import type { SessionObserver } from '../ports/observer.port.ts';
import type { LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { chooseAdmitted, fairOrder } from './admission-order.ts';
import { SessionCountEstimate } from './session-count-estimate.ts';

export interface AdmissionOptions {
  admission: AdmissionStore;
  clock: Clock;
  replicaId: string;
  observer: SessionObserver;
  /** How many clients may wait for slots of one environment, and for how many milliseconds. */
  queue: { limit: number; patienceMs: number };
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** The position of a waiting client. `position` counts from 1. `estimatedWaitMs` is null until two slots have become free. */
export interface QueuePosition {
  position: number;
  waiting: number;
  estimatedWaitMs: number | null;
}

interface Waiter {
  live: LiveSession;
  onPosition: (position: QueuePosition) => void;
  wake: () => void;
  leave: (why: Error) => void;
}

/** How many sessions may be reserved beyond a quota, at least; as many as may wait if the queue is longer. */
const MIN_RESERVED_BEYOND_QUOTA = 1_000;
/** The distance from a quota at which the estimate is good enough: more than all processes together open in a second. */
const spareFor = (quota: number): number => Math.max(100, quota / 10);
/** How often this process checks for free slots while clients wait here. It notices slots that it frees itself at once. */
const ROUND_MS = 200;
/** The period over which the rate of admissions is measured. */
const PACE_WINDOW_MS = 120_000;

/**
 * Slots of environments and quotas of keys and organisations. A session that fits gets its slot at once. The others wait, in an order that
 * is fair among keys and the same for all API processes. The queue is in the store (ADR 10), so a client can return on any process and
 * keeps its position.
 */
export class Admission {
  /** One for each waiting client; a session can have several. */
  readonly #waiters = new Set<Waiter>();
  readonly #admittedAt = new Map<string, number[]>();
  readonly #counts: SessionCountEstimate;
  #round: Promise<void> | null = null;
  #again = false;
  #cancel: () => void = () => {};

  constructor(
    readonly registry: SessionRegistry,
    readonly options: AdmissionOptions,
  ) {
    this.#counts = new SessionCountEstimate(options.admission, options.clock, (error) => options.onBackgroundError(error, ''));
  }

  /**
   * Call before a session is stored. Throws `capacity_exhausted` when its key or organisation exceeds its quota by more sessions than the
   * queue takes: a reservation costs its client nothing, but it costs us a row.
   */
  async reserve(caller: Caller): Promise<void> {
    const most = caller.maxSessions;
    if (most.key === null && most.org === null) return;
    const beyond = Math.max(MIN_RESERVED_BEYOND_QUOTA, this.options.queue.limit);
    if (!(await this.#counts.isBelow(caller, most, () => 1 - beyond))) {
      const bounds = [
        most.key !== null && `this API key may have ${most.key} sessions open`,
        most.org !== null && `this organisation may have ${most.org} sessions open`,
      ].filter((bound) => bound !== false);
      const detail = `429: maximum capacity: ${bounds.join(', ')}, and ${beyond} more are reserved. Close some first.`;
      throw new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 10 });
    }
    this.#counts.add(caller);
  }

  /**
   * Resolves when the session holds a slot. Rejects with `capacity_exhausted` when too many sessions wait or the wait took too long, and
   * with the reason of `signal` when the client left. A client that left keeps its position, but gets no slot until it returns.
   */
  async admit(
    live: LiveSession,
    hosted: HostedEnvironment,
    caller: Caller,
    signal: AbortSignal | null,
    onPosition: (position: QueuePosition) => void,
  ): Promise<void> {
    const { policy, owned, sharedCapacity = false } = hosted;
    const limits: SlotLimits = { capacity: policy.capacity, owned, ...(sharedCapacity && { shared: true }), ...caller.maxSessions };
    if (live.record.admittedAt !== null || live.record.state !== 'reserved') return;
    // Far below every quota no session has to wait, so we need not ask the queue.
    if (limits.capacity === null && (await this.#counts.isBelow(caller, limits, spareFor))) return;
    const { clock, replicaId, observer } = this.options;
    const since = clock.now();
    const queued = { queuedAt: live.record.queuedAt ?? since, waitingOn: replicaId, slotLimits: limits, versionId: hosted.versionId };
    if (!(await this.registry.advance(live, 'reserved', queued, 'reserved'))) return;
    try {
      await this.#wait(live, hosted, limits, signal, onPosition);
      observer.admitted?.(live.record, { waitedMs: clock.now() - since, outcome: 'admitted' });
    } catch (error) {
      await this.registry.advance(live, 'reserved', { waitingOn: null }, 'reserved');
      const left = signal?.aborted === true;
      observer.admitted?.(live.record, { waitedMs: clock.now() - since, outcome: left ? 'left' : 'refused' });
      throw error;
    }
  }

  /** Call when a slot may have become free. */
  onSlotFreed(): void {
    if (this.#waiters.size > 0) this.#run();
  }

  /** Ends all waits with `shutting_down`, before this process ends. The clients return on another process and keep their positions. */
  drain(): void {
    this.#cancel();
    for (const { leave } of this.#waiters) leave(new PalestraError('shutting_down', { retryAfterSeconds: 1, backendStarting: true }));
  }

  #wait(
    live: LiveSession,
    hosted: HostedEnvironment,
    limits: SlotLimits,
    signal: AbortSignal | null,
    onPosition: (position: QueuePosition) => void,
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
        onPosition: (position) => {
          if (position.waiting > queue.limit && position.position > queue.limit)
            refuse(`${position.waiting - 1} other sessions are waiting for them already`);
          else onPosition(position);
        },
      };
      const cancelPatience = clock.after(queue.patienceMs, () => refuse(`none became free within ${queue.patienceMs / 1_000} s`));
      this.#waiters.add(waiter);
      if (signal?.aborted || live.signal.aborted) return onAbort();
      for (const one of [signal, live.signal]) one?.addEventListener('abort', onAbort, { once: true });
      this.#run();
    });
  }

  /** Rounds run one at a time. A request during a round starts another one after it. */
  #run(): void {
    if (this.#round !== null) {
      this.#again = true;
      return;
    }
    this.#again = false;
    this.#cancel();
    this.#round = this.#runRound()
      .catch((error: unknown) => this.options.onBackgroundError(error, ''))
      .finally(() => {
        this.#round = null;
        if (this.#again) this.#run();
        else if (this.#waiters.size > 0) this.#cancel = this.options.clock.after(ROUND_MS, () => this.#run());
      });
  }

  async #runRound(): Promise<void> {
    const { admission, clock, replicaId } = this.options;
    await this.#renewLimits();
    const positions = new Map<string, QueuePosition>();
    await admission.round((snapshot) => {
      const admitted = chooseAdmitted(snapshot);
      const gone = new Set(admitted.map(({ sid }) => sid));
      for (const session of snapshot.waiting) if (gone.has(session.sid)) this.#recordAdmission(session.versionId);
      const left = snapshot.waiting.filter(({ sid }) => !gone.has(sid));
      for (const [sid, position] of this.#positions({ ...snapshot, waiting: left })) positions.set(sid, position);
      return admitted;
    });
    const now = clock.now();
    for (const { live } of this.#waiters) live.lastSeenAt = live.lastRequestAt = now;
    const noLongerWaiting = new Set(
      await admission.findAdmittedOrEnded([...new Set([...this.#waiters].map(({ live }) => live.record.sid))]),
    );
    for (const { live, wake } of [...this.#waiters].filter((waiter) => noLongerWaiting.has(waiter.live.record.sid))) {
      await this.registry.refresh(live);
      const { state, admittedAt } = live.record;
      // Another client of the session has left, which ended the wait of the session, not of this client.
      if (state === 'reserved' && admittedAt === null) await this.registry.advance(live, 'reserved', { waitingOn: replicaId }, 'reserved');
      else wake();
    }
    for (const { live, onPosition } of this.#waiters) {
      const position = positions.get(live.record.sid);
      if (position !== undefined) onPosition(position);
    }
  }

  /** The capacity of an environment may have changed since its clients began to wait. */
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

  #positions(snapshot: AdmissionSnapshot): Map<string, QueuePosition> {
    const ahead = new Map<string, number>();
    const order = fairOrder(snapshot);
    const positions = new Map<string, QueuePosition>();
    const totals = new Map<string, number>();
    for (const { versionId } of order) totals.set(versionId, (totals.get(versionId) ?? 0) + 1);
    for (const { sid, versionId } of order) {
      const position = (ahead.get(versionId) ?? 0) + 1;
      ahead.set(versionId, position);
      const paceMs = this.#paceMs(versionId, snapshot.replicas.length);
      positions.set(sid, {
        position,
        waiting: totals.get(versionId)!,
        estimatedWaitMs: paceMs === null ? null : Math.round(position * paceMs),
      });
    }
    return positions;
  }

  #recordAdmission(versionId: string): void {
    const now = this.options.clock.now();
    const recent = (this.#admittedAt.get(versionId) ?? []).filter((at) => now - at < PACE_WINDOW_MS);
    this.#admittedAt.set(versionId, [...recent, now]);
  }

  /** Mean time between two admissions, milliseconds; null while it is unknown. Each process sees about its share of the admissions. */
  #paceMs(versionId: string, replicas: number): number | null {
    const now = this.options.clock.now();
    const recent = (this.#admittedAt.get(versionId) ?? []).filter((at) => now - at < PACE_WINDOW_MS);
    if (recent.length < 2) return null;
    return (now - recent[0]!) / recent.length / Math.max(1, replicas);
  }
}

function exhausted(hosted: HostedEnvironment, limits: SlotLimits, why: string): PalestraError {
  const bounds = [
    limits.capacity !== null &&
      `${hosted.owner}/${hosted.name} runs ${limits.capacity} sessions${limits.owned && limits.shared !== true ? ' per replica' : ''}`,
    limits.key !== null && `this API key may have ${limits.key} sessions open`,
    limits.org !== null && `this organisation may have ${limits.org} sessions open`,
  ].filter((bound) => bound !== false);
  return new PalestraError('capacity_exhausted', {
    detail: `429: maximum capacity: ${bounds.join(', ')}; all are taken, and ${why}. Try again later, or raise the limit.`,
    retryAfterSeconds: 10,
  });
}
