import type { FastifyReply, FastifyRequest } from 'fastify';
import { BlobError, type BlobStore, type ByteRange } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';

/** Headers for stored bytes, which a browser must not render as a page. */
const SAFE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'accept-ranges': 'bytes',
  'cache-control': 'private, no-cache',
};

export interface RawBody {
  size: number;
  contentType: string;
  /** If set, browsers save the body with this name instead of showing it. */
  fileName?: string;
  read(range: ByteRange): Promise<Uint8Array | NodeJS.ReadableStream>;
}

/** Sends the body, or the part in the `Range` header (RFC 9110 section 14.2). Several ranges get the whole body. */
export async function sendRaw(request: FastifyRequest, reply: FastifyReply, body: RawBody): Promise<void> {
  const range = rangeOf(request.headers.range, body.size);
  reply.headers(SAFE_HEADERS).type(body.contentType);
  if (body.fileName !== undefined)
    reply.header('content-disposition', `attachment; filename="${body.fileName.replaceAll(/[^\w.-]/g, '_')}"`);
  if (range === 'none') {
    reply.header('content-range', `bytes */${body.size}`);
    throw new PalestraError('range_not_satisfiable');
  }
  const { start, end } = range ?? { start: 0, end: body.size - 1 };
  if (range) reply.status(206).header('content-range', `bytes ${start}-${end}/${body.size}`);
  else reply.status(200);
  reply.header('content-length', end - start + 1);
  const part = body.size === 0 ? Buffer.alloc(0) : await body.read({ start, end });
  await reply.send(part instanceof Uint8Array ? Buffer.from(part) : part);
}

/** null = the whole body; `none` = the range is outside of the body. */
function rangeOf(header: string | undefined, size: number): { start: number; end: number } | 'none' | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return null;
  const [first, last] = [match[1]!, match[2]!];
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start > end || start >= size ? 'none' : { start, end };
}

export function textBody(text: string): RawBody {
  const bytes = Buffer.from(text);
  return {
    size: bytes.length,
    contentType: 'text/plain; charset=utf-8',
    read: async ({ start, end }) => bytes.subarray(start, (end ?? bytes.length - 1) + 1),
  };
}

/** An object of the object store. Throws `missing` if it does not exist. */
export async function blobBody(blobs: BlobStore, key: string, missing: () => PalestraError): Promise<RawBody> {
  const info = await blobs.head(key).catch((error: unknown) => {
    if (error instanceof BlobError && error.kind === 'not_found') throw missing();
    throw error;
  });
  return { size: info.size, contentType: info.contentType, read: async (range) => (await blobs.get(key, range)).body };
}
