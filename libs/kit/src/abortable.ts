/** The waiters of a signal share one listener, because adding and removing a listener for each call is expensive. */
const waits = new WeakMap<AbortSignal, Set<(reason: unknown) => void>>();

function waitsOn(signal: AbortSignal): Set<(reason: unknown) => void> {
  const known = waits.get(signal);
  if (known !== undefined) return known;
  const waiting = new Set<(reason: unknown) => void>();
  waits.set(signal, waiting);
  signal.addEventListener(
    'abort',
    () => {
      for (const reject of waiting) reject(signal.reason);
      waiting.clear();
    },
    { once: true },
  );
  return waiting;
}

/** Calls `listener` on the abort of a signal that has not aborted yet. Returns a function that removes it. */
export function onAbort(signal: AbortSignal, tell: (reason: unknown) => void): () => void {
  const waiting = waitsOn(signal);
  waiting.add(tell);
  return () => waiting.delete(tell);
}

/** Settles as `work`, or rejects with the reason of the signal when it aborts. `work` then continues and its result is ignored. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    work.catch(() => {});
    return Promise.reject(signal.reason as Error);
  }
  return new Promise<T>((resolve, reject) => {
    const waiting = waitsOn(signal);
    waiting.add(reject);
    work.then(
      (result) => {
        waiting.delete(reject);
        resolve(result);
      },
      (error: unknown) => {
        waiting.delete(reject);
        reject(error as Error);
      },
    );
  });
}
