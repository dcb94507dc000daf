import { finished, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { FastifyRequest } from 'fastify';
import { MAX_JSON_DEPTH, PalestraError } from '@palestra/protocol';
import { assertBoundedJson } from './json-bounds.ts';

/** `config` of a route: rules for its body. */
export interface BodyConfig {
  /** Bytes after decompression, of a request with a valid key or browser session. */
  bodyLimit?: number;
  /** The handler gets the bytes (a Buffer, or undefined when empty), because the session API and the ingest parse by their own rules. */
  rawBody?: boolean;
  /** JSON of any depth: the handler keeps deep values as text, so that no upload is lost. */
  anyDepth?: boolean;
  /** The handler gets the stream and limits its length. */
  streamBody?: boolean;
  /** Content types of which the handler gets the stream, as with `streamBody`. Other bodies are read by the rules above. */
  streamTypes?: readonly string[];
}

/** Whether the handler gets the stream of a body with this content type. */
export const isStreamed = ({ streamBody, streamTypes }: BodyConfig, contentType: string | undefined): boolean =>
  streamBody === true || (streamTypes?.includes((contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()) ?? false);

/** Most bodies are a few kilobytes of JSON. */
const DEFAULT_LIMIT = 1024 * 1024;
/** Limit of a request without a valid key: a sign-in. */
const PUBLIC_LIMIT = 64 * 1024;
/** Tool calls and actions. A batch of rollout events: the largest real upload was 9 MB (docs/reference/ors.md#batches). */
export const SESSION_BODY_LIMIT = 16 * 1024 * 1024;
export const INGEST_BODY_LIMIT = 64 * 1024 * 1024;
/** A client that sends nothing for this long has lost its connection, or occupies ours on purpose. */
const IDLE_MS = 20_000;

/**
 * Reads the bodies of all routes. It checks the key before it reads the first byte: a body without a key is small and not compressed, so
 * that unauthenticated clients cannot make the service decompress or parse. `authenticate` resolves to null without a credential and throws
 * for an invalid one.
 */
export function bodyParser(authenticate: (request: FastifyRequest) => Promise<unknown>) {
  return async (request: FastifyRequest, payload: Readable): Promise<unknown> => {
    const config = request.routeOptions.config as BodyConfig;
    if (isStreamed(config, request.headers['content-type'])) return payload;
    try {
      const isAuthenticated = (await authenticate(request)) !== null;
      const limit = isAuthenticated ? (config.bodyLimit ?? DEFAULT_LIMIT) : PUBLIC_LIMIT;
      if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit);
      const isJson = /json/i.test(request.headers['content-type'] ?? 'application/json');
      const body = await collect(decoded(request, payload, isAuthenticated), limit);
      if (body.length === 0) return undefined;
      if (isJson) assertBoundedJson(body, config.anyDepth ? Infinity : MAX_JSON_DEPTH);
      if (config.rawBody || !isJson) return body;
      return JSON.parse(body.toString('utf8')) as unknown;
    } catch (error) {
      discardRest(request.raw, error instanceof SyntaxError ? notJson(error) : error);
    }
  };
}

const tooLarge = (limit: number) => new PalestraError('body_too_large', { detail: `This route takes bodies of at most ${limit} bytes.` });
const notJson = (cause: SyntaxError) =>
  new PalestraError('invalid_json', { detail: `The request body is not valid JSON: ${cause.message}`, cause });

/** The body without its `Content-Encoding`. */
function decoded(request: FastifyRequest, payload: Readable, isAuthenticated: boolean): Readable {
  if (request.headers['content-encoding'] !== 'gzip') return payload;
  if (!isAuthenticated) throw new PalestraError('unauthorized', { detail: 'A compressed body needs an API key.' });
  const gunzip = createGunzip();
  payload.on('error', (error) => gunzip.destroy(error));
  gunzip.on('error', (cause) => ((cause as { statusCode?: number }).statusCode ??= 400));
  return payload.pipe(gunzip);
}

/**
 * The whole body. Rejects with `body_too_large` beyond the limit, whatever its headers said, and with 408 when it stops arriving. Does not
 * destroy the stream, because the error response uses the same connection. An async iterator would cost a tool call 4 % of its time.
 */
export function collect(body: Readable, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    const onIdle = () =>
      body.destroy(new PalestraError('invalid_request', { status: 408, detail: 'The request body did not arrive in time.' }));
    const idle = setTimeout(onIdle, IDLE_MS);
    const onData = (piece: Buffer) => {
      idle.refresh();
      size += piece.length;
      if (size > limit) end(tooLarge(limit));
      else pieces.push(piece);
    };
    const end = (error?: Error | null) => {
      clearTimeout(idle);
      body.off('data', onData);
      forget();
      // Stops decompression of a refused body.
      body.pause();
      if (error) reject(error);
      else resolve(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
    };
    const forget = finished(body, { writable: false }, end);
    body.on('data', onData);
  });
}

/** Reads the rest of a refused body, so that the connection can serve the client's next request; rethrows `error`. */
export function discardRest(body: Readable, error: unknown): never {
  body.unpipe();
  body.resume();
  throw error;
}
