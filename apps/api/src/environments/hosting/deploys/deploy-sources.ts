import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import type { BlobBody, BlobStore } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { TenantConcurrency } from '../../../platform/tenant-concurrency.ts';
import { BLOB_STORE } from '../../../platform/tokens.ts';
import { hostingPrefix } from '../logs/log-archive.ts';

const MAX_BYTES = 512 * 1024 * 1024;
const UPLOADS = { owner: 4, all: 32 };
/** A client that sends nothing for this long has lost its connection, or occupies an upload on purpose. */
const IDLE_MS = 60_000;
const STORE_MS = 60_000;
const CONTENT_TYPE = 'application/gzip';

/** The deploy that a source is for. */
export interface SourceOwner {
  orgId: string;
  environmentId: string;
  deployId: string;
}

const tooLarge = (): PalestraError =>
  new PalestraError('source_too_large', {
    detail: `The source is larger than ${MAX_BYTES / 1024 ** 2} MiB. Leave files out with .dockerignore.`,
  });

/** Uploaded sources, in the object store from the upload to the end of the deploy. */
@Injectable()
export class DeploySources {
  readonly #uploads = new TenantConcurrency('uploads of sources', UPLOADS);

  constructor(@Inject(BLOB_STORE) private readonly blobs: BlobStore) {}

  /** `bytes`: as the client announced them; null: it did not. Stores the body and returns its key. Throws `source_too_large`, `capacity_exhausted`, and `invalid_request` when the body stops arriving. */
  async store({ orgId, environmentId, deployId }: SourceOwner, bytes: number | null, body: Readable): Promise<string> {
    if (bytes !== null && bytes > MAX_BYTES) throw tooLarge();
    const key = `${hostingPrefix(environmentId)}sources/${deployId}.tar.gz`;
    await this.#uploads.use(orgId, () => this.blobs.put(key, bounded(body), { contentType: CONTENT_TYPE }));
    return key;
  }

  open(key: string, signal: AbortSignal): Promise<BlobBody> {
    return this.blobs.get(key, undefined, signal);
  }

  /** Idempotent. */
  async delete(key: string): Promise<void> {
    await this.blobs.delete(key, AbortSignal.timeout(STORE_MS));
  }
}

async function* bounded(body: Readable): AsyncGenerator<Uint8Array> {
  const onIdle = () => body.destroy(new PalestraError('invalid_request', { status: 408, detail: 'The source did not arrive in time.' }));
  const idle = setTimeout(onIdle, IDLE_MS);
  let bytes = 0;
  try {
    // The stream is not destroyed when it is too long, because the error response uses the same connection.
    for await (const piece of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
      idle.refresh();
      bytes += piece.length;
      if (bytes > MAX_BYTES) throw tooLarge();
      yield piece;
    }
  } finally {
    clearTimeout(idle);
  }
}
