import { Inject, Injectable } from '@nestjs/common';
import { BlobError, type BlobStore, checkKey, type UrlSigner } from '@palestra/blobs';
import { type FileListQuery, PalestraError, type UploadUrlsBody } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { EnvironmentAccess, mayManage } from '../environments/environment.access.ts';
import type { EnvironmentRecord } from '../environments/environment.record.ts';
import { Database } from '../platform/database/database.ts';
import { BLOB_STORE, URL_SIGNER } from '../platform/tokens.ts';
import { forgetBytes } from './file-quota.sql.ts';
import { UploadService } from './upload.service.ts';

const UPLOAD_URL_SECONDS = 3_600;

/** The bucket of an environment: data that its authors upload. Keys are `environments/<id>/<path>`. */
@Injectable()
export class FileService {
  constructor(
    private readonly access: EnvironmentAccess,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(URL_SIGNER) private readonly signer: UrlSigner,
    private readonly uploads: UploadService,
    private readonly database: Database,
  ) {}

  async uploadUrls(caller: Caller, body: UploadUrlsBody): Promise<{ urls: { fileName: string; uploadUrl: string }[] }> {
    const environment = await this.#managed(caller, body.environmentId);
    const maxBytes = await this.uploads.maxBytes(environment.orgId ?? caller.orgId);
    const urls = body.files.map(({ fileName, contentType }) => {
      const key = keyOf(environment.id, fileName);
      return { fileName, uploadUrl: this.signer.sign({ method: 'PUT', key, contentType, maxBytes }, UPLOAD_URL_SECONDS) };
    });
    return { urls };
  }

  async list(caller: Caller, environmentId: string, query: FileListQuery) {
    await this.#managed(caller, environmentId);
    const root = `environments/${environmentId}/`;
    const page = await this.blobs.list({
      prefix: root + (query.prefix ?? ''),
      delimiter: '/',
      limit: query.limit,
      pageToken: query.pageToken,
    });
    return {
      files: page.blobs.map(({ key, size }) => ({ path: key.slice(root.length), size })),
      folders: page.folders.map((folder) => folder.slice(root.length, -1)),
      ...(page.nextPageToken === null ? {} : { nextPageToken: page.nextPageToken }),
    };
  }

  /** Throws `file_not_found` if no file has the path. */
  async delete(caller: Caller, environmentId: string, path: string): Promise<{ deletedCount: number }> {
    await this.#managed(caller, environmentId);
    const key = keyOf(environmentId, path);
    await this.blobs.head(key);
    await this.blobs.delete(key);
    await forgetBytes(this.database.pool, key);
    return { deletedCount: 1 };
  }

  async deleteFolder(caller: Caller, environmentId: string, path: string): Promise<{ deletedCount: number }> {
    await this.#managed(caller, environmentId);
    const prefix = `${keyOf(environmentId, path.replace(/\/+$/, ''))}/`;
    const deletedCount = await this.blobs.deletePrefix(prefix);
    await forgetBytes(this.database.pool, prefix);
    return { deletedCount };
  }

  async #managed(caller: Caller, environmentId: string): Promise<EnvironmentRecord> {
    const environment = await this.access.visibleById(caller, environmentId);
    if (!mayManage(environment, caller))
      throw new PalestraError('forbidden', { detail: 'Only the owner of an environment may see and change its files.' });
    return environment;
  }
}

function keyOf(environmentId: string, path: string): string {
  try {
    return checkKey(`environments/${environmentId}/${path}`);
  } catch (error) {
    if (error instanceof BlobError)
      throw new PalestraError('invalid_request', {
        detail: `Invalid file path: ${path.slice(0, 200)}. Use relative paths without "..".`,
        cause: error,
      });
    throw error;
  }
}
