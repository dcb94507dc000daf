import { type Clock, onAbort } from '@palestra/kit';

interface Wait {
  dueAt: number;
  reject: (error: unknown) => void;
  tooLong: () => Error;
}

/** The first that was added is the first that is due. */
interface Queue {
  waits: Set<Wait>;
  isTimed: boolean;
}

/**
 * Ends the wait for calls that take too long, or whose session dies; what ran goes on unheard. One timer for all calls of the same limit: most
 * calls end long before, and cost no more than their place in a set.
 */
export class CallWatch {
  /** By limit, milliseconds. */
  readonly #queues = new Map<number, Queue>();

  constructor(readonly clock: Clock) {}

  /** Settles as `work`, with `tooLong` after `limitMs`, or with the signal's reason when it aborts. */
  wait<T>(signal: AbortSignal, work: Promise<T>, limitMs: number, tooLong: () => Error): Promise<T> {
    if (signal.aborted) {
      work.catch(() => {});
      return Promise.reject(signal.reason as Error);
    }
    const queue = this.#queueOf(limitMs);
    return new Promise<T>((resolve, reject) => {
      const wait: Wait = { dueAt: this.clock.now() + limitMs, reject, tooLong };
      queue.waits.add(wait);
      if (!queue.isTimed) this.#time(queue, limitMs);
      const forget = onAbort(signal, reject);
      work.then(
        (value) => {
          queue.waits.delete(wait);
          forget();
          resolve(value);
        },
        (error: unknown) => {
          queue.waits.delete(wait);
          forget();
          reject(error as Error);
        },
      );
    });
  }

  #queueOf(limitMs: number): Queue {
    const known = this.#queues.get(limitMs);
    if (known !== undefined) return known;
    const queue = { waits: new Set<Wait>(), isTimed: false };
    this.#queues.set(limitMs, queue);
    return queue;
  }

  #time(queue: Queue, delayMs: number): void {
    queue.isTimed = true;
    this.clock.after(delayMs, () => this.#look(queue));
  }

  #look(queue: Queue): void {
    queue.isTimed = false;
    const now = this.clock.now();
    for (const wait of queue.waits) {
      if (wait.dueAt > now) return this.#time(queue, wait.dueAt - now);
      queue.waits.delete(wait);
      wait.reject(wait.tooLong());
    }
  }
}
