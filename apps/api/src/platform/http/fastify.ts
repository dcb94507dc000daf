import { type IncomingMessage, maxHeaderSize, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { ConnectionError, FastifyInstance, FastifyReply, FastifyRequest, FastifyHttpOptions } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import type { PublicOrigin } from '../tokens.ts';
import { bodyParser, INGEST_BODY_LIMIT } from './body.ts';
import { HEADERS_TIMEOUT_MS, rawAnswer } from './connections.ts';
import { takePathKey } from './credentials.ts';
import type { RouteTable } from './route-table.ts';

/** How often Node looks for headers that are late. */
const HEADERS_CHECK_MS = 5_000;

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
  socket.end(rawAnswer(new PalestraError('invalid_request', { status, detail })));
}

/** Fastify with the traps of openreward-wire.md section 6 taken care of. `refuse` answers what has no route because its address cannot be read. */
export function createFastifyAdapter(
  refuse: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void,
  trustedProxies: string[] = [],
): FastifyAdapter {
  const options: FastifyHttpOptions<Server> = {
    // body.ts has the limits of routes.
    bodyLimit: INGEST_BODY_LIMIT,
    frameworkErrors: refuse,
    clientErrorHandler: refuseUnread,
    // For `request.ip`, which the audit log has.
    trustProxy: trustedProxies.length > 0 && trustedProxies,
    rewriteUrl: (request) => takePathKey(request as IncomingMessage),
    routerOptions: { maxParamLength: 4096 },
    // Idle connections of the SDK outlive Node's 5 s, and an upload on a closed one is lost.
    keepAliveTimeout: 90_000,
    // An upload may take long as long as it moves: connections.ts.
    requestTimeout: 0,
    http: { connectionsCheckingInterval: HEADERS_CHECK_MS },
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    // prepareFastify says it in the catalogue's words instead.
    return503OnClosing: false,
  };
  return new OkFastifyAdapter(options);
}

/** Headers of every answer, also of streams: nothing that the service sends is a page, except its own pages, which set their own policy. */
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

/** What holds for every route: safe headers, bounded bodies (`BodyConfig`), and the catalogue's answers while the service shuts down. */
export function prepareFastify(fastify: FastifyInstance, { routes, origin, authenticate }: FastifyDependencies): void {
  fastify.server.headersTimeout = HEADERS_TIMEOUT_MS;
  let closing = false;
  fastify.addHook('preClose', async () => void (closing = true));
  fastify.addHook('onRequest', async (request, { raw }) => {
    // On the raw response: streams write their head past Fastify.
    for (const [name, value] of SAFE_HEADERS) raw.setHeader(name, value);
    if (origin.url.startsWith('https:')) raw.setHeader('strict-transport-security', HSTS);
    if (closing) {
      // A client that keeps the connection would ask this process again.
      raw.setHeader('connection', 'close');
      throw new PalestraError('shutting_down', { retryAfterSeconds: 1 });
    }
    // PostgreSQL's text holds none, so that nothing has it in its name.
    if (request.url.includes('%00')) throw new PalestraError('invalid_request', { detail: 'The address has a NUL character (%00).' });
  });
  fastify.addHook('onRoute', (route) => {
    // An unlisted route is for browsers only: for others its path is not there, whatever the method.
    if ((route.config as { unlisted?: boolean } | undefined)?.unlisted) return;
    for (const method of [route.method].flat()) routes.add(method, route.url);
  });
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', bodyParser(authenticate));
}
