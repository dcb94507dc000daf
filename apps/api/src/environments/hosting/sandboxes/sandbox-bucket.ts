import { type BlobStore, checkKey } from '@palestra/blobs';
import { type PackedFile, packFiles, type SandboxProvider } from '@palestra/hosting';
import { PalestraError } from '@palestra/protocol';

/** The bucket is copied, so it is bounded. */
const MOST_FILES = 10_000;
const MOST_BYTES = 512 * 2 ** 20;
const PAGE = 1_000;

export interface BucketCopy {
  blobs: BlobStore;
  environmentId: string;
  /** Where it is in the sandbox. */
  folder: string;
  /** Only this folder of the bucket; null: all. */
  onlyFolder: string | null;
}

/** Copies the files of an environment's bucket into a sandbox, without the right to write them. Throws `invalid_request` if it is too large. */
export async function copyBucket(provider: SandboxProvider, id: string, copy: BucketCopy, signal: AbortSignal): Promise<void> {
  const root = rootOf(copy);
  const files = await list(copy.blobs, root, signal);
  const base = copy.folder.replaceAll(/^\/+|\/+$/g, '');
  async function* entries(): AsyncGenerator<PackedFile> {
    for (const name of foldersOf(base)) yield { name, size: 0, body: null };
    for (const { key, size } of files) {
      const { body } = await copy.blobs.get(key, undefined, signal);
      yield { name: `${base}/${key.slice(root.length)}`, size, body };
    }
  }
  await provider.upload(id, '/', packFiles(entries()), signal);
}

function rootOf({ environmentId, onlyFolder }: BucketCopy): string {
  const root = `environments/${environmentId}/`;
  const folder = (onlyFolder ?? '').replaceAll(/^\/+|\/+$/g, '');
  if (folder === '') return root;
  try {
    return `${checkKey(root + folder)}/`;
  } catch (error) {
    throw new PalestraError('invalid_request', { detail: `only_dir is not a folder of the bucket: ${folder.slice(0, 200)}`, cause: error });
  }
}

async function list(blobs: BlobStore, prefix: string, signal: AbortSignal): Promise<{ key: string; size: number }[]> {
  const files: { key: string; size: number }[] = [];
  let bytes = 0;
  let pageToken: string | undefined;
  do {
    const page = await blobs.list({ prefix, limit: PAGE, ...(pageToken !== undefined && { pageToken }) }, signal);
    for (const { key, size } of page.blobs) {
      files.push({ key, size });
      bytes += size;
    }
    if (files.length > MOST_FILES || bytes > MOST_BYTES) {
      throw new PalestraError('invalid_request', {
        detail: `The bucket is copied into the sandbox, and has more than ${MOST_FILES} files or ${MOST_BYTES / 2 ** 20} MiB. Choose a folder of it with only_dir.`,
      });
    }
    pageToken = page.nextPageToken ?? undefined;
  } while (pageToken !== undefined);
  return files;
}

/** `a`, `a/b`, ... of a path. */
const foldersOf = (path: string): string[] =>
  path === '' ? [] : path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));
