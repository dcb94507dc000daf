/** Calls `work` for every item, at most `concurrency` at the same time; rejects with the first failure, after which no further one starts. */
export async function inTurn<T>(items: Iterable<T>, concurrency: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]();
  let failed = false;
  const lane = async () => {
    for (let next = left.next(); !next.done && !failed; next = left.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: concurrency }, lane));
  const failure = lanes.find((outcome) => outcome.status === 'rejected');
  if (failure) throw failure.reason;
}
