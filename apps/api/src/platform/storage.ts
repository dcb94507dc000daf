import { createHmac } from 'node:crypto';
import path from 'node:path';
import { type BlobStore, FileBlobStore, S3BlobStore, UrlSigner } from '@palestra/blobs';
import type { Config } from './config.ts';
import type { PublicOrigin } from './tokens.ts';

/**
 * The object store that the configuration names. `secret` signs our own URLs: of the file store, and of uploads. `alone` false: another process writes into these
 * files too, whose half-written ones must stay.
 */
export async function openBlobStore(
  config: Config,
  origin: PublicOrigin,
  secret: string,
  { alone = true } = {},
): Promise<{ blobs: BlobStore; urlSigner: UrlSigner }> {
  const key = createHmac('sha256', secret).update('palestra signed urls').digest();
  const urlSigner = new UrlSigner(key, () => origin.url, Date.now);
  if (config.s3) return { blobs: new S3BlobStore(config.s3), urlSigner };
  const blobs = new FileBlobStore(path.join(config.dataDir, 'blobs'), urlSigner);
  if (alone) await blobs.open();
  return { blobs, urlSigner };
}
