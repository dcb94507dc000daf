import type { Clock } from '@palestra/kit';

export interface LivenessMonitorOptions {
  clock: Clock;
  /** A server that gives no sign of life for so long, though something waits for it, is taken for dead; asked anew each time. */
  silenceMs: () => number;
  /** Asks the server anything that it answers at once; resolves with whatever answer, rejects without one. */
  probe: (signal: AbortSignal) => Promise<unknown>;
  /** What waiting requests end with. */
  silent: () => Error;
}

/** Of the silence: how many times the server is asked before it is over. */
const PROBES = 4;

/**
 * Tells a server that takes its time from one that is gone. A prompt waits for setup, a `/create` for a constructor, for
 * minutes and without a byte; so while something waits, the server is asked now and then whether it lives, and any answer to
 * anything counts.
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

  /** To be told of every sign of life. */
  recordSign(): void {
    this.#heardAt = this.#options.clock.now();
  }

  silentForMs(): number {
    return this.#options.clock.now() - this.#heardAt;
  }

  /** Runs a request with a signal that aborts with `silent()` when the server turns out to be gone, or with the given one. */
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
    const silenceMs = this.#options.silenceMs();
    this.#ticking = true;
    clock.after(silenceMs / (2 * PROBES), () => {
      this.#ticking = false;
      this.#check();
      if (this.#waiting.size > 0) this.#scheduleCheck();
    });
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
      // No answer is what the silence consists of.
    } finally {
      this.#probing = false;
    }
  }
}
