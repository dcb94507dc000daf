/** A message of a client that is owed its one reply. */
export interface Owed {
  /** Date.now() */
  expiresAt: number;
  /** Answers in time; what comes later is dropped. */
  expire(): void;
}

const LOOK_MS = 250;

/** Deadlines of all sockets in one timer: they are equally long, so that the first that was added is the first that is due. */
export class Deadlines {
  readonly #owed = new Set<Owed>();
  #timer: NodeJS.Timeout | null = null;

  constructor(readonly limitMs: number) {}

  add(owed: Owed): void {
    owed.expiresAt = Date.now() + this.limitMs;
    this.#owed.add(owed);
    if (this.#timer !== null) return;
    this.#timer = setInterval(() => this.#look(), Math.min(LOOK_MS, this.limitMs));
    this.#timer.unref();
  }

  delete(owed: Owed): void {
    this.#owed.delete(owed);
  }

  #look(): void {
    const now = Date.now();
    for (const owed of this.#owed) {
      if (owed.expiresAt > now) return;
      this.#owed.delete(owed);
      owed.expire();
    }
    if (this.#owed.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
