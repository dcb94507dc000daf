import { type Clock, onAbort } from '@palestra/kit';

interface Wait {
  dueAt: number;
  reject: (error: unknown) => void;
  onTimeout: () => Error;
}

/** Waits with the same limit: the first that was added is the first that is due. */
interface Queue {
  waits: Set<Wait>;
  hasTimer: boolean;
}

/**
 * Ends the wait for calls that take too long or whose session dies. The work itself is not stopped. All calls of the same limit share one
 * timer, because most calls end long before it.
 */
export class CallDeadlines {
  /** By limit, milliseconds. */
  readonly #queues = new Map<number, Queue>();

  constructor(readonly clock: Clock) {}

  /** Settles as `work`. Rejects with `onTimeout()` after `limitMs`, or with the reason of `signal` when that aborts. */
  wait<T>(signal: AbortSignal, work: Promise<T>, limitMs: number, onTimeout: () => Error): Promise<T> {
    if (signal.aborted) {
      work.catch(() => {});
      return Promise.reject(signal.reason as Error);
    }
    const queue = this.#queueOf(limitMs);
    return new Promise<T>((resolve, reject) => {
      const wait: Wait = { dueAt: this.clock.now() + limitMs, reject, onTimeout };
      queue.waits.add(wait);
      if (!queue.hasTimer) this.#startTimer(queue, limitMs);
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
    const queue = { waits: new Set<Wait>(), hasTimer: false };
    this.#queues.set(limitMs, queue);
    return queue;
  }

  #startTimer(queue: Queue, delayMs: number): void {
    queue.hasTimer = true;
    this.clock.after(delayMs, () => this.#rejectDue(queue));
  }

  #rejectDue(queue: Queue): void {
    queue.hasTimer = false;
    const now = this.clock.now();
    for (const wait of queue.waits) {
      if (wait.dueAt > now) return this.#startTimer(queue, wait.dueAt - now);
      queue.waits.delete(wait);
      wait.reject(wait.onTimeout());
    }
  }
}
