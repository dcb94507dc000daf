import { createWriteStream } from 'node:fs';
import { mkdir, realpath, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';

/**
 * Writes to a temporary file in the same folder and renames it when it is complete. Creates the folder. A link stays a link; a device or pipe,
 * such as /dev/stdout, is written directly, because a file must not take its place.
 */
export async function writeFileAtomically(output: string, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  await mkdir(path.dirname(path.resolve(output)), { recursive: true });
  const existing = await stat(output).catch(() => null);
  const isDirect = existing !== null && !existing.isFile() && !existing.isDirectory();
  const file = existing === null || isDirect ? output : await realpath(output);
  const partial = isDirect ? file : `${file}.${process.pid}.partial`;
  try {
    await pipeline(bytes, createWriteStream(partial), { signal });
    if (!isDirect) await rename(partial, file);
  } catch (error) {
    if (!isDirect) await rm(partial, { force: true });
    throw signal.aborted ? signal.reason : error;
  }
}
