import { once } from 'node:events';
import type { Extract, Pack } from 'tar-stream';

type Sink = Extract | ReturnType<Pack['entry']>;

/** Writes a piece, and waits while the stream has enough. Rejects with its error, and when it was destroyed. */
export async function writeTo(stream: Sink, chunk: Uint8Array): Promise<void> {
  if (stream.destroyed) throw new Error('the stream was closed');
  if (stream.write(chunk)) return;
  const stop = new AbortController();
  try {
    await Promise.race([once(stream, 'drain', stop), once(stream, 'close', stop)]);
  } finally {
    stop.abort();
  }
}
