import type { Caller, HostedEnvironment, SessionEngine } from '@palestra/session';
import type { Seat } from './seat.ts';

const SWEEP_MS = 5_000;
/** Sessions with an open socket are known to be wanted; the engine hears so this often, or thrice within their heartbeat timeout. */
const PING_MS = 60_000;

/** Every client of this process, by the id that it may be asked for by. One timer for all. */
export class Seats {
  readonly #seats = new Map<string, Seat>();
  #timer: NodeJS.Timeout | null = null;

  constructor(readonly engine: SessionEngine) {}

  get size(): number {
    return this.#seats.size;
  }

  add(seat: Seat): void {
    this.#seats.set(seat.id, seat);
    this.#timer ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
  }

  delete(seat: Seat): void {
    if (this.#seats.get(seat.id) === seat) this.#seats.delete(seat.id);
    if (this.#seats.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Leaves the sessions to whoever goes on with them. */
  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Of the caller's organisation and of this environment only. */
  find(id: string, caller: Caller, hosted: HostedEnvironment): Seat | null {
    const seat = this.#seats.get(id);
    if (seat === undefined || seat.scene.caller.orgId !== caller.orgId) return null;
    return seat.scene.hosted.environmentId === hosted.environmentId ? seat : null;
  }

  /** Keeps sessions with sockets alive, closes sockets whose session has ended, forgets who has been silent for too long. */
  sweep(): void {
    const now = Date.now();
    for (const seat of this.#seats.values()) {
      const { heartbeatTimeoutMs } = seat.scene.hosted.policy;
      if (seat.attached === null) {
        if (!seat.starting && now - seat.lastUsedAt > heartbeatTimeoutMs + SWEEP_MS && !seat.isBusy) seat.end();
        continue;
      }
      if (now - seat.pingedAt < Math.min(PING_MS, heartbeatTimeoutMs / 3) || !seat.episode.isOpen || seat.isBusy) continue;
      seat.pingedAt = now;
      // Expired, lost, or closed by somebody else: its socket goes, too (openenv-wire.md section 9).
      this.engine.ping(seat.scene.caller, seat.episode.sid!).catch((error: unknown) => seat.lost(error));
    }
  }
}
