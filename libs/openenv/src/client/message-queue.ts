import { PalestraError } from '@palestra/protocol';

/** Messages that may wait in one session. */
const LIMIT = 256;

/** Runs the messages of one session one after another, in call order. */
export class MessageQueue {
  /** The last message; null while none runs. */
  #tail: Promise<unknown> | null = null;
  #waiting = 0;
  readonly #onEnd = (): void => {
    this.#waiting -= 1;
    if (this.#waiting === 0) this.#tail = null;
  };

  /** Does not send a message whose signal aborted before its turn. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#waiting >= LIMIT) {
      const detail = `${LIMIT} messages of this session are already waiting. Wait for their replies.`;
      return Promise.reject(new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 1 }));
    }
    this.#waiting += 1;
    const done = this.#tail === null ? this.#start(work, signal) : this.#startAfter(this.#tail, work, signal);
    // Registered first, so that the count is right when callers continue.
    done.then(this.#onEnd, this.#onEnd);
    this.#tail = done;
    return done;
  }

  #start<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return signal.aborted ? Promise.reject(signal.reason as Error) : work();
  }

  async #startAfter<T>(before: Promise<unknown>, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await before.catch(() => {});
    // A duplicate of the last reply may be in the same packets. It must be read before the next message is sent.
    await new Promise((resolve) => setImmediate(resolve));
    return this.#start(work, signal);
  }
}
