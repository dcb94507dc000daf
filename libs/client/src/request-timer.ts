/**
 * Aborts one request with a signal of the caller, or `timeoutMs` after the start or the last `touch`. Call `end`, which frees the timer and
 * the listeners. (`AbortSignal.any` keeps a request in memory as long as the caller's signal.)
 */
export class RequestTimer {
  readonly #signals: readonly AbortSignal[];
  readonly #abort = () => {
    this.#isAborted = true;
    this.#listener();
  };
  #isAborted = false;
  #listener: () => void = () => {};
  #timer: ReturnType<typeof setTimeout>;
  /** A time of `performance.now()`, which nobody can set. */
  #touchedAt = performance.now();
  /** Whether the time passed. */
  isLate = false;

  constructor(
    readonly timeoutMs: number,
    signals: readonly AbortSignal[],
  ) {
    this.#signals = signals;
    for (const signal of this.#signals) {
      if (signal.aborted) this.#isAborted = true;
      else signal.addEventListener('abort', this.#abort);
    }
    this.#timer = setTimeout(() => this.#check(), timeoutMs);
  }

  /** Sets what aborts the request. */
  onAbort(listener: () => void): void {
    this.#listener = listener;
    if (this.#isAborted) listener();
  }

  /** Starts the time again. */
  touch(): void {
    this.#touchedAt = performance.now();
  }

  end(): void {
    clearTimeout(this.#timer);
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#abort);
  }

  #check(): void {
    const leftMs = this.#touchedAt + this.timeoutMs - performance.now();
    if (leftMs > 0) {
      this.#timer = setTimeout(() => this.#check(), leftMs);
      return;
    }
    this.isLate = true;
    this.#abort();
  }
}
