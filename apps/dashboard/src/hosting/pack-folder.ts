import dockerignore from '@balena/dockerignore';
import { plural } from '../format/number.ts';
import { tarOf, type TarFile } from './tar.ts';

/** Limits of the API (docs/hosting.md). */
export interface PackLimits {
  /** Bytes of all files. */
  maxBytes: number;
  maxFiles: number;
  /** Bytes of the compressed archive. */
  maxArchiveBytes: number;
}
const MIB = 1024 * 1024;
export const PACK_LIMITS: PackLimits = { maxBytes: 1024 * MIB, maxFiles: 50_000, maxArchiveBytes: 512 * MIB };

/** At any depth: data of Git, secrets, and what a build installs again. As `palestra env deploy` does. */
const EXCLUDED = new Set(['.git', '.venv', 'node_modules', '__pycache__', '.palestra']);
export const isAlwaysExcluded = (name: string): boolean => name.split('/').some((part) => EXCLUDED.has(part) || part.startsWith('.env'));
/** Docker sends these two although .dockerignore lists them. */
const isAlwaysIncluded = (name: string): boolean => name === '.dockerignore' || /^(?:.*\/)?Dockerfile$/.test(name);

/** A file of the folder. `name`: its path in the folder, with "/". */
export interface ChosenFile {
  name: string;
  file: File;
}

const mebibytes = (bytes: number): string => `${(bytes / MIB).toFixed(1)} MiB`;

/** The files of a folder that the reader chose with `<input webkitdirectory>`, whose paths begin with its name. */
export const chosenFiles = (files: Iterable<File>): ChosenFile[] =>
  [...files].map((file) => ({ name: file.webkitRelativePath.split('/').slice(1).join('/') || file.name, file }));

/** Without secrets, installed packages and what `.dockerignore` excludes. Throws for nothing and for too much, with the largest files. */
export async function includedFiles(all: readonly ChosenFile[], limits: PackLimits = PACK_LIMITS): Promise<ChosenFile[]> {
  const rules = await all.find(({ name }) => name === '.dockerignore')?.file.text();
  const ignored = dockerignore.default({ ignorecase: false }).add(rules ?? '');
  const files = all.filter(({ name }) => !isAlwaysExcluded(name) && (isAlwaysIncluded(name) || !ignored.ignores(name)));
  if (files.length === 0) throw new Error('The folder has no files, or .dockerignore excludes all of them.');
  if (files.length > limits.maxFiles)
    throw new Error(
      `The folder has ${plural(files.length, 'file')}, more than ${limits.maxFiles}. List what is not needed in .dockerignore.`,
    );
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0);
  if (bytes > limits.maxBytes) {
    const largest = files
      .toSorted((one, other) => other.file.size - one.file.size)
      .slice(0, 5)
      .map(({ name, file }) => `${name} (${mebibytes(file.size)})`);
    throw new Error(
      `The folder has ${mebibytes(bytes)} of files, more than ${mebibytes(limits.maxBytes)}. The largest are ${largest.join(', ')}. List what is not needed in .dockerignore.`,
    );
  }
  return files.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** A tar archive, compressed by gzip. Throws when it is too large. Browsers do not say which files are programs: scripts with `#!` are. */
export async function packFiles(files: readonly ChosenFile[], signal: AbortSignal, limits: PackLimits = PACK_LIMITS): Promise<Blob> {
  const entries: TarFile[] = [];
  for (const { name, file } of files) {
    signal.throwIfAborted();
    entries.push({ name, content: file, isExecutable: (await file.slice(0, 2).text()) === '#!' });
  }
  const pieces = tarOf(entries);
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else if (value.length > 0) controller.enqueue(value);
      else await this.pull!(controller);
    },
    cancel: () => void pieces.return(undefined),
  });
  const archive = await new Response(source.pipeThrough(new CompressionStream('gzip'), { signal })).blob();
  assertArchive(archive, limits);
  return archive;
}

/** Throws for an archive that the API refuses. */
export function assertArchive(archive: Blob, limits: PackLimits = PACK_LIMITS): void {
  if (archive.size > limits.maxArchiveBytes)
    throw new Error(
      `The archive has ${mebibytes(archive.size)}, more than ${mebibytes(limits.maxArchiveBytes)}. Remove what is not needed.`,
    );
}
