/**
 * Calls `put` with a body and a signal, which aborts with a `TimeoutError` when nothing happens for `stallMs`: no piece of the body is read, or
 * taken. So the time of a whole body does not matter, which may be long.
 */
export async function limitStalls<T>(
  body: Uint8Array | AsyncIterable<Uint8Array>,
  stallMs: number,
  signal: AbortSignal,
  put: (body: Uint8Array | AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(new DOMException(`nothing happened for ${stallMs} ms`, 'TimeoutError')), stallMs);
  try {
    return await put(body instanceof Uint8Array ? body : watch(body, timer), AbortSignal.any([signal, stalled.signal]));
  } finally {
    clearTimeout(timer);
  }
}

async function* watch(body: AsyncIterable<Uint8Array>, timer: NodeJS.Timeout): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    timer.refresh();
    yield piece;
    timer.refresh();
  }
}
