import { createReadStream } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import tar from 'tar-stream';
import { sourceInvalid } from '../source/source-limits.ts';

export interface PackedFolder {
  /** Relative to the task. */
  from: string;
  /** Absolute, in the container. */
  to: string;
}

/** A folder that is created, or changed to this mode and owner. */
export interface NewFolder {
  name: string;
  /** Default: all users can write. */
  mode?: number;
  /** Default: root. */
  uid?: number;
}

/** The depth of folders; links may lead in circles. */
const MAX_DEPTH = 32;
/** Rules of Harbor about what is not uploaded. */
const IGNORE_FILE = '.harborignore';

/**
 * A tar stream for `/` of a container: folders (`created`), then files of a task, which root owns. Links are replaced by what they lead to, which must be in the task. The stream fails with `source_invalid` otherwise.
 */
export function packTaskFiles(
  task: string,
  folders: readonly PackedFolder[],
  created: readonly NewFolder[],
  signal: AbortSignal,
): Readable {
  const pack = tar.pack();
  const write = async () => {
    const root = await realpath(task);
    for (const { name, mode = 0o777, uid = 0 } of created) folder(pack, name, mode, uid);
    for (const { from, to } of folders) {
      folder(pack, to, 0o755);
      await add(pack, { root, file: path.join(root, from), to, depth: 0 }, signal);
    }
    pack.finalize();
  };
  write().catch((error: Error) => pack.destroy(error));
  return pack as unknown as Readable;
}

const folder = (pack: tar.Pack, name: string, mode: number, uid = 0) =>
  pack.entry({ name: `${name.replace(/^\//, '')}/`, type: 'directory', mode, uid });

interface Place {
  root: string;
  file: string;
  to: string;
  depth: number;
}

async function add(pack: tar.Pack, { root, file, to, depth }: Place, signal: AbortSignal): Promise<void> {
  if (depth > MAX_DEPTH)
    throw sourceInvalid(`${path.relative(root, file)} is deeper than ${MAX_DEPTH} folders. A link may lead in a circle.`);
  for (const name of await readdir(file)) {
    signal.throwIfAborted();
    if (name === IGNORE_FILE) continue;
    const found = await realpath(path.join(file, name)).catch(() => null);
    const target = path.posix.join(to, name);
    if (found === null || !found.startsWith(`${root}${path.sep}`))
      throw sourceInvalid(`The link ${path.relative(root, path.join(file, name))} leads out of its task. Put a copy in its place.`);
    const stats = await stat(found);
    if (stats.isDirectory()) {
      folder(pack, target, 0o755);
      await add(pack, { root, file: found, to: target, depth: depth + 1 }, signal);
    } else if (stats.isFile()) {
      // Harbor makes scripts executable.
      const isProgram = (stats.mode & 0o100) !== 0 || name.endsWith('.sh');
      const body = pack.entry({ name: target.replace(/^\//, ''), size: stats.size, mode: isProgram ? 0o755 : 0o644 });
      await pipeline(createReadStream(found), body, { signal });
    }
  }
}
