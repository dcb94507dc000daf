/** The queue is full; the item was not added. */
export class BatchQueueFullError extends Error {
  constructor(readonly limit: number) {
    super(`batch queue is full (${limit} items)`);
  }
}

export interface MicroBatcherOptions<In, Out> {
  /** Writes one batch and returns one result per item, in order. A rejection rejects every item of the batch. */
  flush(items: In[]): Promise<Out[]>;
  /** A batch is written when it has this many items... */
  maxItems: number;
  /** ...or when its oldest item waited this long, in milliseconds. 0: at the end of the current event-loop turn. */
  maxAgeMs: number;
  /** Limit of waiting items over all batches. Above it `add` rejects with `BatchQueueFullError`. */
  maxQueued: number;
  /** Number of concurrent writes. */
  concurrency: number;
  /**
   * Whether a batch failed, without effects, because of one of its items. Then it is written again in halves, and only the bad item is
   * rejected. Without this function the whole batch fails.
   */
  isOfItem?(error: unknown): boolean;
}

interface Entry<In, Out> {
  item: In;
  resolve: (out: Out) => void;
  reject: (error: unknown) => void;
}

const unheard = (): void => {};

/** Collects items for a short time and writes them together, in order. Bounded; drained at shutdown. */
export class MicroBatcher<In, Out> {
  readonly #options: MicroBatcherOptions<In, Out>;
  readonly #writes = new Set<Promise<void>>();
  #waiting: Entry<In, Out>[] = [];
  /** How many of the first waiting items may be written. */
  #due = 0;
  #timer: NodeJS.Timeout | undefined;
  #turnEnds = false;
  #added = 0;
  #taken = 0;

  constructor(options: MicroBatcherOptions<In, Out>) {
    this.#options = options;
  }

  /** Items that are in no batch yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** `soon`: write at the end of the current event-loop turn regardless of `maxAgeMs`, together with the waiting items. */
  add(item: In, soon = false): Promise<Out> {
    if (this.#waiting.length >= this.#options.maxQueued) {
      return Promise.reject(new BatchQueueFullError(this.#options.maxQueued));
    }
    return new Promise<Out>((resolve, reject) => this.#queue({ item, resolve, reject }, soon));
  }

  /** As `add`, for an item without a waiter: `flush` must report failures itself. Never rejected; see `waiting`. */
  post(item: In, soon = false): void {
    this.#queue({ item, resolve: unheard, reject: unheard }, soon);
  }

  #queue(entry: Entry<In, Out>, soon: boolean): void {
    this.#added += 1;
    this.#waiting.push(entry);
    if (this.#waiting.length >= this.#options.maxItems) this.#release();
    else if (soon || this.#options.maxAgeMs === 0) this.#releaseAtTurnEnd();
    else this.#timer ??= setTimeout(() => this.#release(), this.#options.maxAgeMs);
  }

  /** Resolves when all items added before are written or have failed. */
  async drain(): Promise<void> {
    const target = this.#added;
    this.#release();
    while (this.#taken < target) await Promise.race(this.#writes);
    await Promise.all(this.#writes);
  }

  #releaseAtTurnEnd(): void {
    if (this.#turnEnds) return;
    this.#turnEnds = true;
    setImmediate(() => {
      this.#turnEnds = false;
      this.#release();
    });
  }

  #release(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#due = this.#waiting.length;
    this.#pump();
  }

  #pump(): void {
    while (this.#due > 0 && this.#writes.size < this.#options.concurrency) {
      const batch = this.#waiting.splice(0, this.#options.maxItems);
      this.#taken += batch.length;
      this.#due = Math.max(0, this.#due - batch.length);
      const write = this.#write(batch).then(() => {
        this.#writes.delete(write);
        this.#pump();
      });
      this.#writes.add(write);
    }
  }

  async #write(batch: Entry<In, Out>[]): Promise<void> {
    try {
      const results = await this.#options.flush(batch.map((entry) => entry.item));
      batch.forEach((entry, index) => entry.resolve(results[index] as Out));
    } catch (error) {
      if (batch.length > 1 && this.#options.isOfItem?.(error)) {
        const half = batch.length >> 1;
        await this.#write(batch.slice(0, half));
        await this.#write(batch.slice(half));
      } else for (const entry of batch) entry.reject(error);
    }
  }
}
