import { link, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { newUuid } from '@palestra/kit';
import {
  type BlobBody,
  BlobError,
  type BlobInfo,
  type BlobPage,
  type BlobStore,
  type ByteRange,
  checkKey,
  type ListOptions,
  type PutOptions,
} from '../blob-store.ts';
import type { UrlSigner } from './url-signer.ts';

const CONTENT_TYPE_SUFFIX = '.type';

/**
 * Objects as files: `<root>/objects/<key>.blob` with the content type in `<key>.type`. A body is written to `<root>/incoming`, synced,
 * then renamed (or hard-linked for `ifAbsent`, because a link fails if the name exists).
 */
export class FileBlobStore implements BlobStore {
  readonly #objects: string;
  readonly #incoming: string;

  constructor(
    root: string,
    private readonly signer: UrlSigner,
  ) {
    this.#objects = path.join(root, 'objects');
    this.#incoming = path.join(root, 'incoming');
  }

  /** Creates the folders and removes incomplete bodies after a crash. */
  async open(): Promise<void> {
    await mkdir(this.#objects, { recursive: true });
    await rm(this.#incoming, { recursive: true, force: true });
    await mkdir(this.#incoming, { recursive: true });
  }

  async put(key: string, body: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions, signal?: AbortSignal): Promise<BlobInfo> {
    const target = this.#file(key);
    const temporary = path.join(this.#incoming, newUuid());
    try {
      await this.#writeSynced(temporary, body, signal);
      await mkdir(path.dirname(target), { recursive: true });
      const typeFile = `${target.slice(0, -'.blob'.length)}${CONTENT_TYPE_SUFFIX}`;
      const temporaryType = `${temporary}${CONTENT_TYPE_SUFFIX}`;
      await this.#writeSynced(temporaryType, Buffer.from(options.contentType), signal);
      if (options.ifAbsent) await link(temporary, target);
      else await rename(temporary, target);
      await rename(temporaryType, typeFile);
      await syncFolder(path.dirname(target));
      return await this.head(key);
    } catch (error) {
      throw toBlobError(error, key);
    } finally {
      await Promise.allSettled([rm(temporary, { force: true }), rm(`${temporary}${CONTENT_TYPE_SUFFIX}`, { force: true })]);
    }
  }

  async get(key: string, range?: ByteRange, signal?: AbortSignal): Promise<BlobBody> {
    const info = await this.head(key);
    if (range && (range.start >= info.size || (range.end !== undefined && range.end < range.start))) {
      throw new BlobError('invalid_range', `bytes ${range.start}-${range.end ?? ''} lie outside of ${info.size}`);
    }
    // Opened here, so that an object that is deleted after `head` is `not_found`, and one that is deleted later is read to its end.
    const file = await open(this.#file(key)).catch((error: unknown) => {
      throw toBlobError(error, key);
    });
    return { ...info, body: file.createReadStream({ ...range, signal }) };
  }

  async head(key: string): Promise<BlobInfo> {
    const file = this.#file(key);
    try {
      const [info, contentType] = await Promise.all([stat(file), readContentType(file)]);
      return { key, size: info.size, contentType, modifiedAt: info.mtime };
    } catch (error) {
      throw toBlobError(error, key);
    }
  }

  async list(options: ListOptions): Promise<BlobPage> {
    const prefix = options.prefix ?? '';
    const limit = Math.min(Math.max(options.limit ?? 1000, 1), 1000);
    const after = options.pageToken ? Buffer.from(options.pageToken, 'base64url').toString() : '';
    const page: BlobPage = { blobs: [], folders: [], nextPageToken: null };
    let last = '';
    for await (const entry of this.#walk(folderOf(prefix), prefix, options.delimiter === '/')) {
      if (after && byteOrder(entry, after) <= 0) continue;
      if (page.blobs.length + page.folders.length === limit) {
        page.nextPageToken = Buffer.from(last).toString('base64url');
        break;
      }
      if (entry.endsWith('/')) page.folders.push(entry);
      else page.blobs.push({ key: entry, size: (await stat(this.#file(entry))).size });
      last = entry;
    }
    return page;
  }

  async delete(key: string): Promise<void> {
    const file = this.#file(key);
    await rm(file, { force: true });
    await rm(`${file.slice(0, -'.blob'.length)}${CONTENT_TYPE_SUFFIX}`, { force: true });
    await this.#removeEmptyFolders(path.dirname(file));
  }

  async deletePrefix(prefix: string): Promise<number> {
    const keys: string[] = [];
    for await (const key of this.#walk(folderOf(prefix), prefix, false)) keys.push(key);
    for (const key of keys) await this.delete(key);
    return keys.length;
  }

  presignPut(key: string, options: { contentType: string; expiresInSeconds: number }): Promise<string> {
    return Promise.resolve(
      this.signer.sign({ method: 'PUT', key: checkKey(key), contentType: options.contentType }, options.expiresInSeconds),
    );
  }

  presignGet(key: string, options: { expiresInSeconds: number; fileName?: string }): Promise<string> {
    return Promise.resolve(this.signer.sign({ method: 'GET', key: checkKey(key), fileName: options.fileName }, options.expiresInSeconds));
  }

  #file(key: string): string {
    return path.join(this.#objects, `${checkKey(key)}.blob`);
  }

  async #writeSynced(file: string, body: Uint8Array | AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    const handle = await open(file, 'w', 0o600);
    try {
      for await (const chunk of body instanceof Uint8Array ? [body] : body) {
        signal?.throwIfAborted();
        await handle.appendFile(chunk);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  /** Keys below `folder` that start with `prefix`, in byte order. With `fold`, the first level below the prefix as `name/`. */
  async *#walk(folder: string, prefix: string, fold: boolean): AsyncGenerator<string> {
    const entries = await readdir(path.join(this.#objects, folder), { withFileTypes: true }).catch(() => []);
    const names = entries
      .filter((entry) => entry.isDirectory() || entry.name.endsWith('.blob'))
      .map((entry) => folder + (entry.isDirectory() ? `${entry.name}/` : entry.name.slice(0, -'.blob'.length)))
      .toSorted(byteOrder);
    for (const name of names) {
      if (!name.startsWith(prefix) && !(name.endsWith('/') && prefix.startsWith(name))) continue;
      if (!name.endsWith('/') || (fold && name.startsWith(prefix) && name.length > prefix.length)) yield name;
      else yield* this.#walk(name, prefix, fold);
    }
  }

  async #removeEmptyFolders(from: string): Promise<void> {
    for (let folder = from; folder.startsWith(`${this.#objects}${path.sep}`); folder = path.dirname(folder)) {
      try {
        await rmdir(folder);
      } catch {
        return;
      }
    }
  }
}

/**
 * The deepest folder that holds all keys with this prefix, so that its siblings are not listed. A prefix that no valid key can start
 * with, such as `../`, gives the root and matches nothing.
 */
function folderOf(prefix: string): string {
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  try {
    if (folder !== '') checkKey(folder.slice(0, -1));
    return folder;
  } catch {
    return '';
  }
}

const byteOrder = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

async function readContentType(file: string): Promise<string> {
  const typeFile = `${file.slice(0, -'.blob'.length)}${CONTENT_TYPE_SUFFIX}`;
  try {
    const handle = await open(typeFile, 'r');
    try {
      return (await handle.readFile('utf8')) || 'application/octet-stream';
    } finally {
      await handle.close();
    }
  } catch {
    return 'application/octet-stream';
  }
}

/** A rename is durable only after a sync of the folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function toBlobError(error: unknown, key: string): unknown {
  if (error instanceof BlobError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  const cause = { cause: error };
  if (code === 'ENOENT') return new BlobError('not_found', `no object ${key}`, cause);
  if (code === 'EEXIST') return new BlobError('exists', `the object ${key} exists already`, cause);
  if (code === 'ENOSPC' || code === 'EDQUOT') return new BlobError('full', 'no space left in the object store', cause);
  if (code === 'ENOTDIR' || code === 'EISDIR' || code === 'ENAMETOOLONG')
    return new BlobError('invalid_key', `not a usable object key: ${key}`, cause);
  if (code === 'EROFS' || code === 'EACCES' || code === 'EIO' || code === 'EMFILE')
    return new BlobError('unavailable', `the object store failed: ${code}`, cause);
  return error;
}
