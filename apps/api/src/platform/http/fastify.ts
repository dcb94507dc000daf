import { type IncomingMessage, maxHeaderSize, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { ConnectionError, FastifyInstance, FastifyReply, FastifyRequest, FastifyHttpOptions } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import type { PublicOrigin } from '../tokens.ts';
import { bodyParser, INGEST_BODY_LIMIT } from './body.ts';
import { HEADERS_TIMEOUT_MS, rawResponse } from './connections.ts';
import { takePathKey } from './credentials.ts';
import type { RouteTable } from './route-table.ts';

/** How often Node checks for late headers. */
const HEADERS_CHECK_MS = 5_000;

/** Nest answers POST with 201; every client of this API expects exactly 200 (docs/reference/ors.md#headers). */
class OkFastifyAdapter extends FastifyAdapter {
  override reply(reply: FastifyReply, body: unknown, statusCode?: number) {
    return super.reply(reply, body, statusCode === 201 ? 200 : statusCode);
  }

  /** app.ts sets the only error handler. Nest sets its own too late for errors that Fastify raises before a route runs. */
  override setErrorHandler(): ReturnType<FastifyAdapter['setErrorHandler']> {
    return this.getInstance();
  }

  override status(reply: FastifyReply, statusCode: number) {
    return super.status(reply, statusCode === 201 ? 200 : statusCode);
  }
}

/** Answers bytes that Node cannot parse as a request; the connection ends with the response. */
function refuseUnparsed({ code }: ConnectionError, socket: Socket): void {
  if (code === 'ECONNRESET' || socket.destroyed || !socket.writable) return void socket.destroy();
  const [status, detail] =
    code === 'HPE_HEADER_OVERFLOW'
      ? [431, `The request's headers are larger than ${maxHeaderSize} bytes.`]
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'The request did not arrive in time.']
        : [400, 'The bytes are not a valid HTTP request.'];
  socket.end(rawResponse(new PalestraError('invalid_request', { status, detail })));
}

/**
 * Fastify with the options that the clients need (docs/reference/ors.md#http-server). `refuse` answers requests whose address cannot be
 * parsed.
 */
export function createFastifyAdapter(
  refuse: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void,
  trustedProxies: string[] = [],
): FastifyAdapter {
  const options: FastifyHttpOptions<Server> = {
    // body.ts applies the limits of routes.
    bodyLimit: INGEST_BODY_LIMIT,
    frameworkErrors: refuse,
    clientErrorHandler: refuseUnparsed,
    // For `request.ip` in the audit log.
    trustProxy: trustedProxies.length > 0 && trustedProxies,
    rewriteUrl: (request) => takePathKey(request as IncomingMessage),
    routerOptions: { maxParamLength: 4096 },
    // Idle connections of the SDK outlive Node's 5 s, and an upload on a closed connection is lost.
    keepAliveTimeout: 90_000,
    // An upload may take any time while data arrives: connections.ts.
    requestTimeout: 0,
    http: { connectionsCheckingInterval: HEADERS_CHECK_MS },
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    // prepareFastify answers with the error of the catalogue instead.
    return503OnClosing: false,
  };
  return new OkFastifyAdapter(options);
}

/** Headers of every response, also of streams: only the dashboard's pages are pages, and they set their own policy. */
const SAFE_HEADERS: [name: string, value: string][] = [
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'; sandbox"],
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['cache-control', 'no-store'],
];
const HSTS = 'max-age=31536000';

export interface FastifyDependencies {
  routes: RouteTable;
  origin: PublicOrigin;
  /** See `bodyParser`. */
  authenticate(request: FastifyRequest): Promise<unknown>;
}

/** Rules for every route: safe headers, limited bodies (`BodyConfig`), and the catalogue's errors during shutdown. */
export function prepareFastify(fastify: FastifyInstance, { routes, origin, authenticate }: FastifyDependencies): void {
  fastify.server.headersTimeout = HEADERS_TIMEOUT_MS;
  let closing = false;
  fastify.addHook('preClose', async () => void (closing = true));
  fastify.addHook('onRequest', async (request, { raw }) => {
    // On the raw response, because streams write their head without Fastify.
    for (const [name, value] of SAFE_HEADERS) raw.setHeader(name, value);
    if (origin.url.startsWith('https:')) raw.setHeader('strict-transport-security', HSTS);
    if (closing) {
      // A client that keeps the connection would send its next request to this process.
      raw.setHeader('connection', 'close');
      throw new PalestraError('shutting_down', { retryAfterSeconds: 1 });
    }
    // PostgreSQL's text cannot have a NUL, so no name has one.
    if (request.url.includes('%00')) throw new PalestraError('invalid_request', { detail: 'The address has a NUL character (%00).' });
  });
  fastify.addHook('onRoute', (route) => {
    // An unlisted route is for browsers only: for other clients its path does not exist, with any method.
    if ((route.config as { unlisted?: boolean } | undefined)?.unlisted) return;
    for (const method of [route.method].flat()) routes.add(method, route.url);
  });
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', bodyParser(authenticate));
}
