import { PalestraError } from '@palestra/protocol';

/** Messages that may wait for one session; a client that sends more without reading has lost its way. */
const LIMIT = 256;

/** Runs the messages of one session one after another, in the order of the calls. */
export class MessageQueue {
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** A message whose caller has left before its turn is not sent. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#waiting >= LIMIT) {
      const detail = `${LIMIT} messages of this session wait already; wait for their replies.`;
      return Promise.reject(new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 1 }));
    }
    this.#waiting += 1;
    const behind = this.#waiting > 1;
    const turn = this.#tail.then(async () => {
      // A second copy of the reply before this is in the same packets: it is to be read before the next message is sent.
      if (behind) await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      return work();
    });
    const done = turn.finally(() => (this.#waiting -= 1));
    this.#tail = done.catch(() => {});
    return done;
  }
}
