/** Raised to a caller whose item did not fit: the batch queue is at its bound. */
export class BatchQueueFullError extends Error {
  constructor(readonly limit: number) {
    super(`batch queue is full (${limit} items)`);
  }
}

export interface MicroBatcherOptions<In, Out> {
  /** Writes one batch; answers one result per item, in order. A rejection rejects every item of the batch. */
  flush(items: In[]): Promise<Out[]>;
  /** A batch goes at this many items... */
  maxItems: number;
  /** ...or when its oldest item has waited this long; 0 = the end of the current event-loop turn. */
  maxAgeMs: number;
  /** Bound of waiting items over all batches; past it `add` rejects with `BatchQueueFullError`. */
  maxQueued: number;
  /** Batches written at the same time. */
  concurrency: number;
}

/** Collects items for a short while and writes them together; bounded, and drained on shutdown. */
export class MicroBatcher<In, Out> {
  readonly #options: MicroBatcherOptions<In, Out>;
  #waiting: { item: In; resolve: (out: Out) => void; reject: (error: unknown) => void }[] = [];
  #armed = false;
  #active = 0;
  #idle: (() => void)[] = [];

  constructor(options: MicroBatcherOptions<In, Out>) {
    this.#options = options;
  }

  add(item: In): Promise<Out> {
    if (this.#waiting.length >= this.#options.maxQueued) {
      return Promise.reject(new BatchQueueFullError(this.#options.maxQueued));
    }
    return new Promise<Out>((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#waiting.length >= this.#options.maxItems) this.#pump();
      else this.#arm();
    });
  }

  /** Resolves when nothing is waiting or being written. */
  async drain(): Promise<void> {
    this.#pump();
    if (this.#waiting.length === 0 && this.#active === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    const fire = () => {
      this.#armed = false;
      this.#pump();
    };
    if (this.#options.maxAgeMs === 0) setImmediate(fire);
    else setTimeout(fire, this.#options.maxAgeMs);
  }

  #pump(): void {
    while (this.#waiting.length > 0 && this.#active < this.#options.concurrency) {
      const batch = this.#waiting.splice(0, this.#options.maxItems);
      this.#active += 1;
      void this.#write(batch);
    }
  }

  async #write(batch: { item: In; resolve: (out: Out) => void; reject: (error: unknown) => void }[]): Promise<void> {
    try {
      const results = await this.#options.flush(batch.map((entry) => entry.item));
      batch.forEach((entry, index) => entry.resolve(results[index] as Out));
    } catch (error) {
      for (const entry of batch) entry.reject(error);
    } finally {
      this.#active -= 1;
      this.#pump();
      if (this.#waiting.length === 0 && this.#active === 0) {
        for (const wake of this.#idle.splice(0)) wake();
      }
    }
  }
}
