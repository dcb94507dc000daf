/** Who waits on a signal. One listener serves them all: adding and removing one for each call costs more than the rest of its bookkeeping. */
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

/** Tells of the abort of a signal, which has not aborted yet. Returns what stops that. */
export function onAbort(signal: AbortSignal, tell: (reason: unknown) => void): () => void {
  const waiting = waitsOn(signal);
  waiting.add(tell);
  return () => waiting.delete(tell);
}

/** Settles as `work`, or rejects with the signal's reason as soon as it aborts (then `work` goes on unheard). */
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
