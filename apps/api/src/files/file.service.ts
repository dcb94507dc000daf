import { Inject, Injectable } from '@nestjs/common';
import { BlobError, type BlobStore, checkKey } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { EnvironmentAccess, mayManage } from '../environments/environment.access.ts';
import { BLOB_STORE } from '../platform/tokens.ts';
import type { FileListQuery, UploadUrlsBody } from './file.schema.ts';

const UPLOAD_URL_SECONDS = 3_600;

/** The bucket of an environment: data that its authors upload. Keys are `environments/<id>/<path>`. */
@Injectable()
export class FileService {
  constructor(
    private readonly access: EnvironmentAccess,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
  ) {}

  async uploadUrls(caller: Caller, body: UploadUrlsBody): Promise<{ urls: { fileName: string; uploadUrl: string }[] }> {
    await this.#managed(caller, body.environmentId);
    const urls = await Promise.all(
      body.files.map(async ({ fileName, contentType }) => ({
        fileName,
        uploadUrl: await this.blobs.presignPut(keyOf(body.environmentId, fileName), { contentType, expiresInSeconds: UPLOAD_URL_SECONDS }),
      })),
    );
    return { urls };
  }

  async list(caller: Caller, environmentId: string, query: FileListQuery) {
    await this.access.visibleById(caller, environmentId);
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

  /** Throws `file_not_found` when there is none of that path. */
  async delete(caller: Caller, environmentId: string, path: string): Promise<{ deletedCount: number }> {
    await this.#managed(caller, environmentId);
    const key = keyOf(environmentId, path);
    await this.blobs.head(key);
    await this.blobs.delete(key);
    return { deletedCount: 1 };
  }

  async deleteFolder(caller: Caller, environmentId: string, path: string): Promise<{ deletedCount: number }> {
    await this.#managed(caller, environmentId);
    return { deletedCount: await this.blobs.deletePrefix(`${keyOf(environmentId, path.replace(/\/+$/, ''))}/`) };
  }

  async #managed(caller: Caller, environmentId: string): Promise<void> {
    const environment = await this.access.visibleById(caller, environmentId);
    if (!mayManage(environment, caller))
      throw new PalestraError('forbidden', { detail: 'Only its owner may change the files of an environment.' });
  }
}

function keyOf(environmentId: string, path: string): string {
  try {
    return checkKey(`environments/${environmentId}/${path}`);
  } catch (error) {
    if (error instanceof BlobError)
      throw new PalestraError('invalid_request', { detail: `Not a valid file path: ${path.slice(0, 200)}`, cause: error });
    throw error;
  }
}
