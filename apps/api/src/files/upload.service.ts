import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { BlobError, type BlobStore } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { TenantConcurrency } from '../platform/tenant-concurrency.ts';
import { BLOB_STORE } from '../platform/tokens.ts';
import { ownerOfObject, reserveBytes, settleBytes, storedBytes } from './file-quota.sql.ts';

/** Maximum of S3 for one PUT. */
const MAX_FILE_BYTES = 5 * 1024 ** 3;
const UPLOADS = { owner: 16, all: 128 };
/** A client that sends nothing for this long has lost its connection, or occupies an upload on purpose. */
const IDLE_MS = 60_000;
const GB = 1e9;

/** An upload through a signed URL. */
export interface FileUpload {
  key: string;
  contentType: string;
  /** Limit of the URL. */
  maxBytes: number;
  /** null: the client does not send it. */
  contentLength: number | null;
  body: Readable | undefined;
}

/** Stores uploaded files of environments within the quota of their organisation. */
@Injectable()
export class UploadService {
  readonly #uploads = new TenantConcurrency('uploads of files', UPLOADS);

  constructor(
    private readonly database: Database,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Maximum size of a new file of the organisation. Throws `storage_quota_exceeded` when nothing is left. */
  async maxBytes(orgId: string): Promise<number> {
    const left = this.config.maxStoredBytes - (await storedBytes(this.database.pool, orgId));
    if (left <= 0) throw this.#exceeded();
    return Math.min(MAX_FILE_BYTES, left);
  }

  /** Throws `body_too_large`, `storage_quota_exceeded`, `capacity_exhausted`, and `url_expired` when the environment is gone. */
  async store(upload: FileUpload): Promise<{ size: number }> {
    const orgId = await ownerOfObject(this.database.pool, upload.key);
    if (orgId === null) throw new PalestraError('url_expired');
    if (upload.contentLength !== null && upload.contentLength > upload.maxBytes) throw tooLarge(upload.maxBytes);
    return this.#uploads.use(orgId, () => this.#store(orgId, upload));
  }

  async #store(orgId: string, { key, contentType, maxBytes, contentLength, body }: FileUpload): Promise<{ size: number }> {
    const { pool } = this.database;
    const wanted = contentLength ?? maxBytes;
    const granted = await reserveBytes(pool, { key, orgId, wanted, orLess: contentLength === null }, this.config.maxStoredBytes);
    if (granted === 0 && wanted > 0) throw this.#exceeded();
    try {
      const bytes =
        body === undefined ? Buffer.alloc(0) : bounded(body, granted, () => (granted < maxBytes ? this.#exceeded() : tooLarge(maxBytes)));
      const { size } = await this.blobs.put(key, bytes, { contentType });
      return { size };
    } finally {
      await settleBytes(pool, { key, orgId, granted }, () => this.#sizeOf(key));
    }
  }

  /** null: the object does not exist. */
  async #sizeOf(key: string): Promise<number | null> {
    try {
      return (await this.blobs.head(key)).size;
    } catch (error) {
      if (error instanceof BlobError && error.kind === 'not_found') return null;
      throw error;
    }
  }

  #exceeded(): PalestraError {
    const detail = `The files of this organisation reached their quota of ${this.config.maxStoredBytes / GB} GB. Delete some, or ask the operator for more.`;
    return new PalestraError('storage_quota_exceeded', { detail });
  }
}

const tooLarge = (maxBytes: number) =>
  new PalestraError('body_too_large', { detail: `This URL accepts a file of at most ${maxBytes} bytes.` });

async function* bounded(body: Readable, maxBytes: number, exceeded: () => Error): AsyncGenerator<Uint8Array> {
  const onIdle = () => body.destroy(new PalestraError('invalid_request', { status: 408, detail: 'The file did not arrive in time.' }));
  const idle = setTimeout(onIdle, IDLE_MS);
  let bytes = 0;
  try {
    // The stream is not destroyed when the store refuses half-way, because the error response uses the same connection.
    for await (const piece of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
      idle.refresh();
      bytes += piece.length;
      if (bytes > maxBytes) throw exceeded();
      yield piece;
    }
  } finally {
    clearTimeout(idle);
  }
}
