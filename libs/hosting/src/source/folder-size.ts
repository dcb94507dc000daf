import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';

/**
 * Bytes and number of files of a folder that changes meanwhile; links are not followed. Stops when one of the limits is passed, so that it takes
 * bounded time.
 */
export async function folderSize(
  folder: string,
  limits: { maxBytes: number; maxEntries: number },
): Promise<{ bytes: number; entries: number }> {
  const size = { bytes: 0, entries: 0 };
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    for (const found of await readdir(next, { withFileTypes: true }).catch(() => [])) {
      size.entries += 1;
      const file = path.join(next, found.name);
      if (found.isDirectory()) folders.push(file);
      else
        size.bytes += await lstat(file)
          .then(({ blocks }) => blocks * 512)
          .catch(() => 0);
      if (size.bytes > limits.maxBytes || size.entries > limits.maxEntries) return size;
    }
  }
  return size;
}
