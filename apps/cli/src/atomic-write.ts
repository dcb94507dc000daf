import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';

/** Writes to a temporary file in the same folder and renames it when it is complete. Creates the folder. */
export async function writeFileAtomically(output: string, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  await mkdir(path.dirname(path.resolve(output)), { recursive: true });
  const partial = `${output}.${process.pid}.partial`;
  try {
    await pipeline(bytes, createWriteStream(partial), { signal });
    await rename(partial, output);
  } catch (error) {
    await rm(partial, { force: true });
    throw signal.aborted ? signal.reason : error;
  }
}
