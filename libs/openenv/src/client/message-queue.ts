import { PalestraError } from '@palestra/protocol';

/** Messages that may wait for one session; a client that sends more without reading has lost its way. */
const LIMIT = 256;

/** Runs the messages of one session one after another, in the order of the calls. */
export class MessageQueue {
  /** Of the last message; null when none is under way. */
  #tail: Promise<unknown> | null = null;
  #waiting = 0;
  readonly #onEnd = (): void => {
    this.#waiting -= 1;
    if (this.#waiting === 0) this.#tail = null;
  };

  /** A message whose caller has left before its turn is not sent. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#waiting >= LIMIT) {
      const detail = `${LIMIT} messages of this session wait already; wait for their replies.`;
      return Promise.reject(new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 1 }));
    }
    this.#waiting += 1;
    const done = this.#tail === null ? this.#start(work, signal) : this.#startAfter(this.#tail, work, signal);
    // Before whoever waits for it goes on.
    done.then(this.#onEnd, this.#onEnd);
    this.#tail = done;
    return done;
  }

  #start<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return signal.aborted ? Promise.reject(signal.reason as Error) : work();
  }

  async #startAfter<T>(before: Promise<unknown>, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await before.catch(() => {});
    // A second copy of the reply before this is in the same packets: it is to be read before the next message is sent.
    await new Promise((resolve) => setImmediate(resolve));
    return this.#start(work, signal);
  }
}
