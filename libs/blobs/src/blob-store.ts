/**
 * Objects by key: uploaded environment files, exports, sealed transcripts. Both stores pass the same spec (blob-store.spec.ts). Keys are
 * `/`-separated UTF-8 text without empty, `.` or `..` segments, at most 900 bytes. No key may be a folder of another one (`a` and `a/b`),
 * because some S3 servers cannot store both. Every method takes a signal; failures are `BlobError`s.
 */
export interface BlobStore {
  /** Resolves when the whole body is stored durably. Readers never see a part of it. Rejects with an error that the body throws. */
  put(key: string, body: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions, signal?: AbortSignal): Promise<BlobInfo>;
  /** Throws `BlobError('not_found')`. The caller reads the body to its end or destroys it. */
  get(key: string, range?: ByteRange, signal?: AbortSignal): Promise<BlobBody>;
  head(key: string, signal?: AbortSignal): Promise<BlobInfo>;
  /** Keys in byte order. With `delimiter: '/'` deeper keys are folded into `folders`. */
  list(options: ListOptions, signal?: AbortSignal): Promise<BlobPage>;
  /** Idempotent: deleting a missing key succeeds. */
  delete(key: string, signal?: AbortSignal): Promise<void>;
  /** Deletes every key that starts with `prefix` and returns their number. */
  deletePrefix(prefix: string, signal?: AbortSignal): Promise<number>;
  /** A URL for one PUT with exactly this content type, valid for everybody until it expires. ASCII only. */
  presignPut(key: string, options: { contentType: string; expiresInSeconds: number }): Promise<string>;
  /** A URL for GET, valid for everybody until it expires. `fileName`: the name under which browsers save it. */
  presignGet(key: string, options: { expiresInSeconds: number; fileName?: string }): Promise<string>;
}

export interface PutOptions {
  contentType: string;
  /** Fail with `BlobError('exists')` if the key exists. Of several concurrent writers one succeeds. */
  ifAbsent?: boolean;
}

/** Bytes `start` to `end`, both inclusive; `end` absent = to the end. */
export interface ByteRange {
  start: number;
  end?: number;
}

export interface BlobInfo {
  key: string;
  /** Bytes. */
  size: number;
  contentType: string;
  modifiedAt: Date;
}

export interface BlobBody extends BlobInfo {
  body: NodeJS.ReadableStream;
}

export interface ListOptions {
  prefix?: string;
  delimiter?: '/';
  /** 1 to 1000. */
  limit?: number;
  pageToken?: string;
}

export interface BlobPage {
  blobs: { key: string; size: number }[];
  /** Full prefixes, with their trailing `/`. */
  folders: string[];
  nextPageToken: string | null;
}

/** `full`: no space left. `unavailable`: the store did not answer; retry. */
export type BlobErrorKind = 'not_found' | 'exists' | 'full' | 'unavailable' | 'invalid_key' | 'invalid_range';

export class BlobError extends Error {
  constructor(
    readonly kind: BlobErrorKind,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = 'BlobError';
  }
}

const MAX_KEY_BYTES = 900;

/** Throws `BlobError('invalid_key')` for a key that `BlobStore` does not allow. */
export function checkKey(key: string): string {
  const segments = key.split('/');
  const bad = segments.some((segment) => segment === '' || segment === '.' || segment === '..');
  // oxlint-disable-next-line no-control-regex -- the regex finds the control characters that a key must not contain
  if (
    bad ||
    /[\u0000-\u001f\u007f\\]/.test(key) ||
    Buffer.byteLength(key) > MAX_KEY_BYTES ||
    segments.some((s) => Buffer.byteLength(s) > 240)
  ) {
    throw new BlobError('invalid_key', `not a valid object key: ${JSON.stringify(key.slice(0, 100))}`);
  }
  return key;
}
