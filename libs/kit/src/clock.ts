/** Time as a port, so that tests can control it. All values are milliseconds since the Unix epoch. */
export interface Clock {
  now(): number;
  /** Calls `run` once after `delayMs`. Returns a function that cancels it. Does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
  /** Resolves after `delayMs`; rejects with the reason of the signal if it aborts first. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  sleep(delayMs, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal?.reason as Error);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      }, delayMs);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  },
};
