import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import dockerignore from '@balena/dockerignore';
import tar from 'tar-stream';
import { HostingError } from '../../provider/hosting-error.ts';

/** The package's types name an export `default`; what it exports is the function itself. */
const newRules = dockerignore as unknown as typeof dockerignore.default;

/** Name of the Dockerfile in a context, which no file of an author has. */
export const DOCKERFILE = '.palestra.Dockerfile';
/** Applied here. Podman would apply them again, also to what is added. */
const IGNORE_FILES = new Set(['.dockerignore', '.containerignore']);

export interface ContextFolder {
  folder: string;
  /** Its place in the context; empty for the root. */
  at: string;
  isExcluded: (name: string, isFolder: boolean) => boolean;
}

/**
 * A tar stream for `POST /build`: folders, and a Dockerfile. Everybody may read the files, because an instance is another user than the one who
 * wrote them. Links stay links, which the engine resolves in the image.
 */
export function buildContext(folders: readonly ContextFolder[], dockerfile: string, signal: AbortSignal): Readable {
  const pack = tar.pack();
  const write = async () => {
    for (const folder of folders) await add(pack, folder, '', signal);
    pack.entry({ name: DOCKERFILE, mode: 0o644 }, dockerfile);
    pack.finalize();
  };
  write().catch((error: Error) => pack.destroy(error));
  return pack as unknown as Readable;
}

async function add(pack: tar.Pack, folder: ContextFolder, inside: string, signal: AbortSignal): Promise<void> {
  for (const entry of await readdir(path.join(folder.folder, inside), { withFileTypes: true })) {
    signal.throwIfAborted();
    const name = path.posix.join(inside, entry.name);
    if (folder.isExcluded(name, entry.isDirectory())) continue;
    const file = path.join(folder.folder, name);
    const header = { name: path.posix.join(folder.at, name) };
    if (entry.isDirectory()) {
      pack.entry({ ...header, type: 'directory', mode: 0o755 });
      await add(pack, folder, name, signal);
    } else if (entry.isSymbolicLink()) {
      pack.entry({ ...header, type: 'symlink', linkname: await readlink(file) });
    } else if (entry.isFile()) {
      const { size, mode } = await lstat(file);
      const body = pack.entry({ ...header, size, mode: (mode & 0o100) === 0 ? 0o644 : 0o755 });
      await pipeline(createReadStream(file), body, { signal });
    }
  }
}

/** What `.dockerignore` excludes, or the ignore file of one Dockerfile (relative path) in its place. */
export async function exclusion(folder: string, ignoreFile: string | null): Promise<ContextFolder['isExcluded']> {
  const own = ignoreFile === null ? null : await text(path.join(folder, ignoreFile));
  const rules = own ?? (await text(path.join(folder, '.dockerignore'))) ?? '';
  const filter = newRules({ ignorecase: false }).add(rules);
  // Below an excluded folder an exception may include a file.
  const hasExceptions = /^\s*!/m.test(rules);
  return (name, isFolder) => IGNORE_FILES.has(name) || (filter.ignores(name) && !(isFolder && hasExceptions));
}

/** Null if there is no such file. */
export async function text(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new HostingError('source_invalid', `${path.basename(file)} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
