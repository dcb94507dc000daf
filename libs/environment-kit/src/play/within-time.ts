/** Rejects with `what` if the promise does not settle in time. `onLate` gets a value that comes later. */
export async function withinTime<T>(
  promise: Promise<T>,
  timeoutMs: number,
  what: string,
  onLate: (value: T) => void = () => {},
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      promise.then(onLate, () => {});
      reject(new Error(`${what} after ${timeoutMs / 1_000} s`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
