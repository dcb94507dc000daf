/**
 * Objects by key: uploaded environment files, exports, later sealed transcripts. Two stores, one contract, checked by the
 * same spec (blob-store.spec.ts). Keys are `/`-separated UTF-8 text without empty, `.` or `..` segments, at most 900 bytes;
 * no key may be a folder of another one (`a` and `a/b`): not every S3 server can hold both.
 * Every method takes a signal; failures are `BlobError`s.
 */
export interface BlobStore {
  /** Stores the whole body durably before it resolves; a reader never sees half of it. */
  put(key: string, body: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions, signal?: AbortSignal): Promise<BlobInfo>;
  /** Throws `BlobError('not_found')`. The body must be read to its end or destroyed. */
  get(key: string, range?: ByteRange, signal?: AbortSignal): Promise<BlobBody>;
  head(key: string, signal?: AbortSignal): Promise<BlobInfo>;
  /** Keys in byte order. With `delimiter: '/'` deeper keys are folded into `folders`. */
  list(options: ListOptions, signal?: AbortSignal): Promise<BlobPage>;
  /** Idempotent: deleting a key that is not there is fine. */
  delete(key: string, signal?: AbortSignal): Promise<void>;
  /** Deletes every key that starts with `prefix`; answers how many there were. */
  deletePrefix(prefix: string, signal?: AbortSignal): Promise<number>;
  /** A URL that anybody may PUT one body to, with exactly this content type, until it expires. ASCII only. */
  presignPut(key: string, options: { contentType: string; expiresInSeconds: number }): Promise<string>;
  /** A URL that anybody may GET until it expires. `fileName` makes browsers save it under that name. */
  presignGet(key: string, options: { expiresInSeconds: number; fileName?: string }): Promise<string>;
}

export interface PutOptions {
  contentType: string;
  /** Refuse with `BlobError('exists')` when the key is taken; of several racing writers one wins. */
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

/** `full`: no room left. `unavailable`: the store did not answer; try again. */
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

/** Throws `BlobError('invalid_key')` for a key outside the contract above. */
export function checkKey(key: string): string {
  const segments = key.split('/');
  const bad = segments.some((segment) => segment === '' || segment === '.' || segment === '..');
  // oxlint-disable-next-line no-control-regex -- control characters are exactly what a key may not hold
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
