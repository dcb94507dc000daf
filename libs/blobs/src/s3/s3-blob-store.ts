import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
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
import type { UrlSigner } from '../file/url-signer.ts';

export interface S3Settings {
  /** null: AWS. */
  endpoint: string | null;
  bucket: string;
  region: string;
  /** null: the default chain of the SDK (environment, profile, instance role). */
  accessKeyId: string | null;
  secretAccessKey: string | null;
  /** Signs URLs of reads, for clients that cannot reach the server; default: the server's own signatures. */
  signer?: Pick<UrlSigner, 'sign'> | null;
}

/** Limit of the silence of the server. With the three attempts of the SDK it adds up to a minute. */
const SILENCE_MS = 20_000;

/** Objects in a bucket of any S3 server. The SDK retries with backoff. */
export class S3BlobStore implements BlobStore {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #signer: Pick<UrlSigner, 'sign'> | null;

  constructor(settings: S3Settings, silenceMs = SILENCE_MS) {
    this.#bucket = settings.bucket;
    this.#signer = settings.signer ?? null;
    this.#client = new S3Client({
      region: settings.region,
      ...(settings.endpoint ? { endpoint: settings.endpoint, forcePathStyle: true } : {}),
      ...(settings.accessKeyId && settings.secretAccessKey
        ? { credentials: { accessKeyId: settings.accessKeyId, secretAccessKey: settings.secretAccessKey } }
        : {}),
      maxAttempts: 3,
      // `requestTimeout` only warns. `socketTimeout` ends a request to a silent server.
      requestHandler: { connectionTimeout: 3_000, socketTimeout: silenceMs },
    });
  }

  async put(key: string, body: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions, signal?: AbortSignal): Promise<BlobInfo> {
    checkKey(key);
    const source = body instanceof Uint8Array ? null : new WatchedBody(body);
    const target = { Bucket: this.#bucket, Key: key, ContentType: options.contentType, ...(options.ifAbsent ? { IfNoneMatch: '*' } : {}) };
    await this.#send(key, signal, async () => {
      if (body instanceof Uint8Array) {
        await this.#client.send(new PutObjectCommand({ ...target, Body: body }), { abortSignal: signal });
        return;
      }
      // 8 MiB parts, two at a time: constant memory for any size.
      const upload = new Upload({
        client: this.#client,
        params: { ...target, Body: source!.readable },
        partSize: 8 * 1024 * 1024,
        queueSize: 2,
      });
      const abort = () => void upload.abort();
      signal?.addEventListener('abort', abort, { once: true });
      try {
        await upload.done();
      } finally {
        signal?.removeEventListener('abort', abort);
      }
    }).catch((error: unknown) => {
      throw source?.failure ? source.failure.error : error;
    });
    return this.head(key, signal);
  }

  async get(key: string, range?: ByteRange, signal?: AbortSignal): Promise<BlobBody> {
    checkKey(key);
    const answer = await this.#send(key, signal, () =>
      this.#client.send(
        new GetObjectCommand({ Bucket: this.#bucket, Key: key, ...(range ? { Range: `bytes=${range.start}-${range.end ?? ''}` } : {}) }),
        { abortSignal: signal },
      ),
    );
    const total = answer.ContentRange ? Number(answer.ContentRange.split('/')[1]) : (answer.ContentLength ?? 0);
    return { ...toInfo(key, { ...answer, ContentLength: total }), body: answer.Body as Readable };
  }

  async head(key: string, signal?: AbortSignal): Promise<BlobInfo> {
    checkKey(key);
    return toInfo(
      key,
      await this.#send(key, signal, () =>
        this.#client.send(new HeadObjectCommand({ Bucket: this.#bucket, Key: key }), { abortSignal: signal }),
      ),
    );
  }

  async list(options: ListOptions, signal?: AbortSignal): Promise<BlobPage> {
    const answer = await this.#send(options.prefix ?? '', signal, () =>
      this.#client.send(
        new ListObjectsV2Command({
          Bucket: this.#bucket,
          Prefix: options.prefix,
          Delimiter: options.delimiter,
          MaxKeys: options.limit,
          ContinuationToken: options.pageToken,
        }),
        { abortSignal: signal },
      ),
    );
    return {
      blobs: (answer.Contents ?? []).map((object) => ({ key: object.Key ?? '', size: object.Size ?? 0 })),
      folders: (answer.CommonPrefixes ?? []).map((folder) => folder.Prefix ?? ''),
      nextPageToken: answer.NextContinuationToken ?? null,
    };
  }

  async delete(key: string, signal?: AbortSignal): Promise<void> {
    checkKey(key);
    await this.#send(key, signal, () =>
      this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: key }), { abortSignal: signal }),
    );
  }

  async deletePrefix(prefix: string, signal?: AbortSignal): Promise<number> {
    let count = 0;
    // Always lists the first page, because its keys are deleted before the next iteration.
    for (;;) {
      const { blobs } = await this.list({ prefix, limit: 1000 }, signal);
      if (blobs.length === 0) return count;
      const Objects = blobs.map(({ key }) => ({ Key: key }));
      await this.#send(prefix, signal, () =>
        this.#client.send(new DeleteObjectsCommand({ Bucket: this.#bucket, Delete: { Objects, Quiet: true } }), { abortSignal: signal }),
      );
      count += blobs.length;
    }
  }

  presignPut(key: string, options: { contentType: string; expiresInSeconds: number }): Promise<string> {
    const command = new PutObjectCommand({ Bucket: this.#bucket, Key: checkKey(key), ContentType: options.contentType });
    return getSignedUrl(this.#client, command, { expiresIn: options.expiresInSeconds, signableHeaders: new Set(['content-type', 'host']) });
  }

  async presignGet(key: string, options: { expiresInSeconds: number; fileName?: string }): Promise<string> {
    if (this.#signer) return this.#signer.sign({ method: 'GET', key: checkKey(key), fileName: options.fileName }, options.expiresInSeconds);
    const disposition = options.fileName
      ? { ResponseContentDisposition: `attachment; filename*=UTF-8''${encodeURIComponent(options.fileName)}` }
      : {};
    return getSignedUrl(this.#client, new GetObjectCommand({ Bucket: this.#bucket, Key: checkKey(key), ...disposition }), {
      expiresIn: options.expiresInSeconds,
    });
  }

  /** A deadline that expired is an error of the store (`unavailable`). A caller that aborted gets its AbortError. */
  async #send<T>(key: string, signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      const late = signal?.aborted === true && (signal.reason as { name?: unknown } | null)?.name === 'TimeoutError';
      throw late ? new BlobError('unavailable', 'the object store did not answer in time', { cause: error }) : toBlobError(error, key);
    }
  }
}

function toInfo(key: string, answer: { ContentLength?: number; ContentType?: string; LastModified?: Date }): BlobInfo {
  return {
    key,
    size: answer.ContentLength ?? 0,
    contentType: answer.ContentType ?? 'application/octet-stream',
    modifiedAt: answer.LastModified ?? new Date(0),
  };
}

function toBlobError(error: unknown, key: string): unknown {
  const { name, $metadata, code } = error as { name?: string; code?: string; $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  const cause = { cause: error };
  if (name === 'AbortError') return error;
  if (name === 'NoSuchKey' || name === 'NotFound' || status === 404) return new BlobError('not_found', `no object ${key}`, cause);
  if (name === 'PreconditionFailed' || status === 412 || (status === 409 && name === 'ConditionalRequestConflict'))
    return new BlobError('exists', `the object ${key} exists already`, cause);
  if (status === 416) return new BlobError('invalid_range', 'the range lies outside of the object', cause);
  if (status === 507 || name === 'QuotaExceeded') return new BlobError('full', 'no space left in the object store', cause);
  return new BlobError('unavailable', `the object store failed: ${name ?? code ?? 'unknown error'}`, cause);
}

/** A body as the Node stream that lib-storage needs. `failure`: the error of the body itself, which is no error of the store. */
class WatchedBody {
  failure: { error: unknown } | null = null;
  readonly readable: Readable;

  constructor(body: AsyncIterable<Uint8Array>) {
    this.readable = Readable.from(this.#watch(body), { objectMode: false });
  }

  async *#watch(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      this.failure = { error };
      throw error;
    }
  }
}
