/** Yields the items of `source` and requests the next one while the current one is used, but no further. */
export async function* readAhead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  const request = () => {
    const next = source.next();
    // A failure is thrown when the item is wanted.
    next.catch(() => {});
    return next;
  };
  let next = request();
  try {
    for (let item = await next; !item.done; item = await next) {
      next = request();
      yield item.value;
    }
  } finally {
    await next.catch(() => {});
    await source.return(undefined);
  }
}
