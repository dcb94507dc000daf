import pMap from 'p-map';

/**
 * Calls `work` for each item, at most `concurrency` at a time. After a failure it starts no further item, waits for the running ones (they
 * may use the caller's transaction; `p-map` alone would not wait) and throws the first error.
 */
export async function mapLimit<T>(items: Iterable<T>, concurrency: number, work: (item: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  const attempt = async (item: T) => {
    if (failures.length === 0) await work(item).catch((error: unknown) => failures.push(error));
  };
  await pMap(items, attempt, { concurrency });
  if (failures.length > 0) throw failures[0];
}
