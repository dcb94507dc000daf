import type { Clock } from '@palestra/kit';

export interface LivenessMonitorOptions {
  clock: Clock;
  /** A server that sends nothing for this long while a request waits is considered dead. Read again each time. */
  silenceMs: () => number;
  /** Sends a cheap request; resolves with any response, rejects without one. */
  probe: (signal: AbortSignal) => Promise<unknown>;
  /** The error of waiting requests. */
  silent: () => Error;
}

/** Probes within the silence limit. */
const PROBES = 4;

/**
 * Distinguishes a slow server from a dead one. A prompt waits for setup, a `/create` for a constructor, for minutes without a byte. While a
 * request waits, the server is probed; any response proves that it lives.
 */
export class LivenessMonitor {
  readonly #options: LivenessMonitorOptions;
  readonly #waiting = new Set<{ since: number; controller: AbortController }>();
  #heardAt = Number.NEGATIVE_INFINITY;
  #probing = false;
  #ticking = false;

  constructor(options: LivenessMonitorOptions) {
    this.#options = options;
  }

  /** Call for every sign of life. */
  recordSign(): void {
    this.#heardAt = this.#options.clock.now();
  }

  silentForMs(): number {
    return this.#options.clock.now() - this.#heardAt;
  }

  /** Runs a request with a signal that aborts with `silent()` if the server is dead, or with `signal`. */
  async watch<T>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const waiting = { since: this.#options.clock.now(), controller: new AbortController() };
    this.#waiting.add(waiting);
    if (!this.#ticking) this.#scheduleCheck();
    try {
      const answer = await run(AbortSignal.any([signal, waiting.controller.signal]));
      this.recordSign();
      return answer;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  #scheduleCheck(): void {
    const { clock } = this.#options;
    const pauseMs = this.#options.silenceMs() / (2 * PROBES);
    const dueAt = clock.now() + pauseMs;
    this.#ticking = true;
    clock.after(pauseMs, () => {
      this.#ticking = false;
      this.#leaveOut(clock.now() - dueAt);
      this.#check();
      if (this.#waiting.size > 0) this.#scheduleCheck();
    });
  }

  /** While this process was paused, or when its clock was set, nothing was read: that time is no silence of the server. */
  #leaveOut(lateMs: number): void {
    const now = this.#options.clock.now();
    const later = (at: number) => Math.min(at + Math.max(0, lateMs), now);
    this.#heardAt = later(this.#heardAt);
    for (const waiting of this.#waiting) waiting.since = later(waiting.since);
  }

  #check(): void {
    const { clock, silent } = this.#options;
    const silenceMs = this.#options.silenceMs();
    let longest = 0;
    for (const { since, controller } of this.#waiting) {
      const quietMs = clock.now() - Math.max(since, this.#heardAt);
      longest = Math.max(longest, quietMs);
      if (quietMs >= silenceMs) controller.abort(silent());
    }
    if (longest >= silenceMs / PROBES && longest < silenceMs && !this.#probing) void this.#probe();
  }

  async #probe(): Promise<void> {
    this.#probing = true;
    try {
      await this.#options.probe(AbortSignal.timeout(this.#options.silenceMs() / PROBES));
      this.recordSign();
    } catch {
      // No response: the silence goes on.
    } finally {
      this.#probing = false;
    }
  }
}
