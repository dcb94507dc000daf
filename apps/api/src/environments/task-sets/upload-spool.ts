import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { PalestraError } from '@palestra/protocol';

/**
 * Runs `use` with the body as a temporary file, because Parquet is read from its end and a slow client must not hold a transaction. Throws
 * `body_too_large` and leaves the rest of the body in the stream.
 */
export async function withSpooled<T>(body: Readable, maxBytes: number, use: (file: string, bytes: number) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-tasks-'));
  try {
    const file = path.join(folder, 'upload');
    return await use(file, await spool(body, file, maxBytes));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function spool(body: Readable, file: string, maxBytes: number): Promise<number> {
  let bytes = 0;
  async function* counted(): AsyncGenerator<Buffer> {
    // The stream is not destroyed, because the error response uses the same connection.
    for await (const piece of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > maxBytes)
        throw new PalestraError('body_too_large', { detail: `A file of tasks may have at most ${maxBytes / 1024 ** 3} GiB.` });
      yield piece;
    }
  }
  await pipeline(counted, createWriteStream(file));
  return bytes;
}
