import type { Clock } from '@palestra/kit';

/** Settles as `work`, or rejects with `onTimeout()` after `limitMs`. Does not stop `work`. */
export function withDeadline<T>(clock: Clock, work: Promise<T>, limitMs: number, onTimeout: () => Error): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.after(limitMs, () => reject(onTimeout()));
    work.then(
      (result) => {
        cancel();
        resolve(result);
      },
      (error: unknown) => {
        cancel();
        reject(error as Error);
      },
    );
  });
}
