import { createHmac, timingSafeEqual } from 'node:crypto';

export type SignedMethod = 'GET' | 'PUT';

export interface SignedRequest {
  method: SignedMethod;
  key: string;
  /** PUT: required content type of the body. */
  contentType?: string;
  /** PUT: limit of the size of the body. */
  maxBytes?: number;
  /** GET: name under which browsers save the file. */
  fileName?: string;
}

/** URLs of the file store: `<origin>/blobs/<key>?method&expires&...&signature` with an HMAC-SHA256 over all parts. */
export class UrlSigner {
  constructor(
    /** The first secret signs, all verify. */
    private readonly secret: Buffer | (() => Buffer[]),
    private readonly origin: () => string,
    private readonly now: () => number,
  ) {}

  sign(request: SignedRequest, expiresInSeconds: number): string {
    const expires = Math.floor(this.now() / 1000) + expiresInSeconds;
    const query = new URLSearchParams({ method: request.method, expires: String(expires) });
    if (request.contentType !== undefined) query.set('contentType', request.contentType);
    if (request.maxBytes !== undefined) query.set('maxBytes', String(request.maxBytes));
    if (request.fileName !== undefined) query.set('fileName', request.fileName);
    query.set('signature', signatureOf(request, expires, this.#secrets()[0]!));
    // URLSearchParams writes a space as '+', which some clients keep. All clients read %20.
    return `${this.origin()}/blobs/${encodeKey(request.key)}?${query.toString().replaceAll('+', '%20')}`;
  }

  /** The request that a signed URL allows; null if it expired, was altered or is for another method. */
  verify(method: string, key: string, query: URLSearchParams): SignedRequest | null {
    const expires = Number(query.get('expires'));
    if (method !== query.get('method') || !Number.isSafeInteger(expires) || expires * 1000 < this.now()) return null;
    if (method !== 'GET' && method !== 'PUT') return null;
    const request: SignedRequest = { method, key };
    const contentType = query.get('contentType');
    if (contentType !== null) request.contentType = contentType;
    const maxBytes = query.get('maxBytes');
    if (maxBytes !== null) request.maxBytes = Number(maxBytes);
    const fileName = query.get('fileName');
    if (fileName !== null) request.fileName = fileName;
    const received = Buffer.from(query.get('signature') ?? '');
    const isSigned = this.#secrets().some((secret) => {
      const expected = Buffer.from(signatureOf(request, expires, secret));
      return received.length === expected.length && timingSafeEqual(received, expected);
    });
    return isSigned ? request : null;
  }

  #secrets(): Buffer[] {
    return typeof this.secret === 'function' ? this.secret() : [this.secret];
  }
}

function signatureOf(request: SignedRequest, expires: number, secret: Buffer): string {
  const text = JSON.stringify([
    request.method,
    request.key,
    expires,
    request.contentType ?? null,
    request.fileName ?? null,
    request.maxBytes ?? null,
  ]);
  return createHmac('sha256', secret).update(text).digest('base64url');
}

/** Percent-encodes each segment, so that the URL is ASCII and `/` keeps its meaning. */
export function encodeKey(key: string): string {
  return key
    .split('/')
    .map((segment) => encodeURIComponent(segment).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`))
    .join('/');
}
