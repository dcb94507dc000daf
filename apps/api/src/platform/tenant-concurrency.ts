import { PalestraError } from '@palestra/protocol';

export interface ConcurrencyLimits {
  /** Of one organisation. */
  owner: number;
  /** Of all organisations in this process. */
  all: number;
}

/** Limits the work in progress in this process, so that one organisation cannot take the whole capacity. */
export class TenantConcurrency {
  readonly #held = new Map<string, number>();
  #all = 0;

  /** `what`: the work, in the plural, for the error. */
  constructor(
    private readonly what: string,
    private readonly limits: ConcurrencyLimits,
  ) {}

  /** Counts one piece of work until the returned function is called. Throws `capacity_exhausted` at the limit. */
  acquire(owner: string): () => void {
    const held = this.#held.get(owner) ?? 0;
    const isOwnerFull = held >= this.limits.owner;
    if (isOwnerFull || this.#all >= this.limits.all) {
      const whose = isOwnerFull ? `${held} ${this.what} of this organisation` : `${this.#all} ${this.what}`;
      throw new PalestraError('capacity_exhausted', {
        detail: `${whose} are already in progress. Send the request again when one has ended.`,
        retryAfterSeconds: 10,
      });
    }
    this.#held.set(owner, held + 1);
    this.#all += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#all -= 1;
      const rest = this.#held.get(owner)! - 1;
      if (rest === 0) this.#held.delete(owner);
      else this.#held.set(owner, rest);
    };
  }

  /** Runs `work` within the limits. */
  async use<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const release = this.acquire(owner);
    try {
      return await work();
    } finally {
      release();
    }
  }
}

/** Runs at most `permits` at the same time; others wait in their order. */
export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(permits: number) {
    this.#free = permits;
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
