import { type IncomingMessage, maxHeaderSize, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { ConnectionError, FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import { takePathKey } from './credentials.ts';
import type { RouteTable } from './route-table.ts';

/** The largest body that any route takes, bytes after decompression. The largest real upload was 9 MB (openreward-wire.md 13.7). */
export const BODY_LIMIT = 64 * 1024 * 1024;

/** Nest answers POST with 201; every client of this API expects exactly 200 (openreward-wire.md 2.1). */
class OkFastifyAdapter extends FastifyAdapter {
  override reply(reply: FastifyReply, body: unknown, statusCode?: number) {
    return super.reply(reply, body, statusCode === 201 ? 200 : statusCode);
  }

  /** app.ts sets the one error handler; Nest's own would come too late for what Fastify refuses before a route runs. */
  override setErrorHandler(): ReturnType<FastifyAdapter['setErrorHandler']> {
    return this.getInstance();
  }

  override status(reply: FastifyReply, statusCode: number) {
    return super.status(reply, statusCode === 201 ? 200 : statusCode);
  }
}

/** What Node refuses before it is a request, in the catalogue's words; the connection ends with it. */
function refuseUnread({ code }: ConnectionError, socket: Socket): void {
  if (code === 'ECONNRESET' || socket.destroyed || !socket.writable) return void socket.destroy();
  const [status, detail] =
    code === 'HPE_HEADER_OVERFLOW'
      ? [431, `The request's headers are larger than ${maxHeaderSize} bytes.`]
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'The request did not come in time.']
        : [400, 'This is no HTTP request that can be read.'];
  const body = JSON.stringify(new PalestraError('invalid_request', { status, detail }).toBody());
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  socket.end(head + body);
}

/** Fastify with the traps of openreward-wire.md section 6 taken care of. `refuse` answers what has no route because its address cannot be read. */
export function createFastifyAdapter(refuse: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void): FastifyAdapter {
  const options: FastifyServerOptions = {
    bodyLimit: BODY_LIMIT,
    frameworkErrors: refuse,
    clientErrorHandler: refuseUnread,
    rewriteUrl: (request) => takePathKey(request as IncomingMessage),
    routerOptions: { maxParamLength: 4096 },
    // Idle connections of the SDK outlive Node's 5 s, and an upload on a closed one is lost.
    keepAliveTimeout: 90_000,
    requestTimeout: 0,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    // prepareFastify says it in the catalogue's words instead.
    return503OnClosing: false,
  };
  return new OkFastifyAdapter(options);
}

/**
 * Bodies. JSON is parsed, an empty body is `undefined` whatever its type, any other type stays a Buffer. A route with
 * `config: { rawBody: true }` gets the bytes as they came (a Buffer, or undefined when empty): the session plane and the
 * ingest parse by their own rules. One with `streamBody: true` gets the stream, without a limit. `Content-Encoding: gzip` is undone for all.
 */
export function prepareFastify(fastify: FastifyInstance, routes: RouteTable): void {
  fastify.server.headersTimeout = 95_000;
  let closing = false;
  fastify.addHook('preClose', async () => void (closing = true));
  fastify.addHook('onRequest', async (request) => {
    if (closing) throw new PalestraError('shutting_down', { retryAfterSeconds: 1 });
    // PostgreSQL's text holds none, so that nothing has it in its name.
    if (request.url.includes('%00')) throw new PalestraError('invalid_request', { detail: 'The address has a NUL character (%00).' });
  });
  fastify.addHook('onRoute', (route) => {
    // An unlisted route is for browsers only: for others its path is not there, whatever the method.
    if ((route.config as { unlisted?: boolean } | undefined)?.unlisted) return;
    for (const method of [route.method].flat()) routes.add(method, route.url);
  });
  fastify.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.headers['content-encoding'] !== 'gzip') return done(null, payload);
    const gunzip = Object.assign(createGunzip(), { receivedEncodedLength: 0 });
    payload.on('data', (chunk: Buffer) => (gunzip.receivedEncodedLength += chunk.length));
    payload.on('error', (error) => gunzip.destroy(error));
    gunzip.on('error', (cause) => ((cause as { statusCode?: number }).statusCode ??= 400));
    delete request.headers['content-length'];
    done(null, payload.pipe(gunzip));
  });
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', async (request: FastifyRequest, payload: Readable) => {
    const config = request.routeOptions.config as { rawBody?: boolean; streamBody?: boolean };
    if (config.streamBody) return payload;
    if (Number(request.headers['content-length'] ?? 0) > BODY_LIMIT) throw new PalestraError('body_too_large');
    const body = await collect(payload).catch((error: unknown) => discardRest(request.raw, error));
    if (body.length === 0) return undefined;
    if (config.rawBody || !/json/i.test(request.headers['content-type'] ?? 'application/json')) return body;
    try {
      return JSON.parse(body.toString('utf8')) as unknown;
    } catch (error) {
      throw new PalestraError('invalid_json', { detail: `The request body is not valid JSON: ${(error as Error).message}`, cause: error });
    }
  });
}

/** Reads what is left of a refused body, so that the connection serves the client's next request; rethrows `error`. */
export function discardRest(body: Readable, error: unknown): never {
  body.unpipe();
  body.resume();
  throw error;
}

/** The whole body. Throws `body_too_large` beyond the limit, whatever its length header or its compression said. */
async function collect(payload: Readable): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  // Not destroyed on the way out: the refusal has to reach the client on this very connection.
  for await (const piece of payload.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > BODY_LIMIT) throw new PalestraError('body_too_large');
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
