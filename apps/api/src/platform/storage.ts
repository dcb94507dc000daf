import { createHmac } from 'node:crypto';
import path from 'node:path';
import { type BlobStore, FileBlobStore, S3BlobStore, UrlSigner } from '@palestra/blobs';
import type { Config } from './config.ts';
import type { SecretKeys } from './secret-keys.ts';
import type { PublicOrigin } from './tokens.ts';

/**
 * Opens the configured object store. `secrets` sign URLs of the file store, of uploads, and of an S3 server that clients cannot reach. `alone` false: another process writes into the
 * same folder, so its partial files must stay.
 */
export async function openBlobStore(
  config: Config,
  origin: PublicOrigin,
  secrets: SecretKeys,
  { alone = true } = {},
): Promise<{ blobs: BlobStore; urlSigner: UrlSigner }> {
  const keys = () => secrets.accepted.map((secret) => createHmac('sha256', secret).update('palestra signed urls').digest());
  const urlSigner = new UrlSigner(keys, () => origin.url, Date.now);
  if (config.s3) return { blobs: new S3BlobStore({ ...config.s3, signer: config.s3SignedUrls ? null : urlSigner }), urlSigner };
  const blobs = new FileBlobStore(path.join(config.dataDir, 'blobs'), urlSigner);
  if (alone) await blobs.open();
  return { blobs, urlSigner };
}
