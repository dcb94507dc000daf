/** A message of a client that is pending its one reply. */
export interface PendingReply {
  /** Date.now() */
  expiresAt: number;
  /** Answers in time; what comes later is dropped. */
  expire(): void;
}

const CHECK_INTERVAL_MS = 250;

/** ReplyDeadlines of all sockets in one timer: they are equally long, so that the first that was added is the first that is due. */
export class ReplyDeadlines {
  readonly #pending = new Set<PendingReply>();
  #timer: NodeJS.Timeout | null = null;

  constructor(readonly limitMs: number) {}

  add(pending: PendingReply): void {
    pending.expiresAt = Date.now() + this.limitMs;
    this.#pending.add(pending);
    if (this.#timer !== null) return;
    this.#timer = setInterval(() => this.#expireDue(), Math.min(CHECK_INTERVAL_MS, this.limitMs));
    this.#timer.unref();
  }

  delete(pending: PendingReply): void {
    this.#pending.delete(pending);
  }

  #expireDue(): void {
    const now = Date.now();
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
