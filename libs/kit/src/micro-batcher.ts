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
  /** ...or when its oldest item has waited this long, milliseconds; 0 = the end of the current event-loop turn. */
  maxAgeMs: number;
  /** Bound of waiting items over all batches; past it `add` rejects with `BatchQueueFullError`. */
  maxQueued: number;
  /** Batches written at the same time. */
  concurrency: number;
  /**
   * Whether a batch failed, and left nothing behind, by what one of its items is: it is written again in halves then, and only that item
   * is rejected. Without it a batch fails as a whole.
   */
  isOfItem?(error: unknown): boolean;
}

interface Entry<In, Out> {
  item: In;
  resolve: (out: Out) => void;
  reject: (error: unknown) => void;
}

const unheard = (): void => {};

/** Collects items for a short while and writes them together, in the order they came; bounded, and drained on shutdown. */
export class MicroBatcher<In, Out> {
  readonly #options: MicroBatcherOptions<In, Out>;
  readonly #writes = new Set<Promise<void>>();
  #waiting: Entry<In, Out>[] = [];
  /** How many of the waiting items may go; they are the first ones. */
  #due = 0;
  #timer: NodeJS.Timeout | undefined;
  #turnEnds = false;
  #added = 0;
  #taken = 0;

  constructor(options: MicroBatcherOptions<In, Out>) {
    this.#options = options;
  }

  /** Items that no batch has taken yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** `soon`: goes at the end of the current event-loop turn whatever `maxAgeMs` is, and takes along what waits already. */
  add(item: In, soon = false): Promise<Out> {
    if (this.#waiting.length >= this.#options.maxQueued) {
      return Promise.reject(new BatchQueueFullError(this.#options.maxQueued));
    }
    return new Promise<Out>((resolve, reject) => this.#queue({ item, resolve, reject }, soon));
  }

  /** As `add`, for an item whose end nobody hears of: `flush` itself has to tell of failures. Never refused; see `waiting`. */
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

  /** Resolves when all that had been added before is written, or has failed. */
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
