/** A client's message that waits for its reply. */
export interface PendingReply {
  /** A time of `performance.now()`, which nobody can set. */
  expiresAt: number;
  /** Sends an error in place of the reply. */
  expire(): void;
}

const CHECK_INTERVAL_MS = 250;

/** Deadlines of all sockets with one timer. All are equally long, so they expire in the order in which they were added. */
export class ReplyDeadlines {
  readonly #pending = new Set<PendingReply>();
  #timer: NodeJS.Timeout | null = null;

  constructor(readonly limitMs: number) {}

  add(reply: PendingReply): void {
    reply.expiresAt = performance.now() + this.limitMs;
    this.#pending.add(reply);
    if (this.#timer !== null) return;
    this.#timer = setInterval(() => this.#expireDue(), Math.min(CHECK_INTERVAL_MS, this.limitMs));
    this.#timer.unref();
  }

  delete(reply: PendingReply): void {
    this.#pending.delete(reply);
  }

  #expireDue(): void {
    const now = performance.now();
    for (const pending of this.#pending) {
      if (pending.expiresAt > now) return;
      this.#pending.delete(pending);
      pending.expire();
    }
    if (this.#pending.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
