import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { type EventStore, StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { McpTimings } from '../../platform/config.ts';

export interface ExchangeOptions {
  /** The body, already parsed. */
  message?: unknown;
  /** Told to the client as its session's id, with the answer of an `initialize`. */
  sid?: string;
  /** One JSON document when all is done, else a stream with comments that keep it open. */
  as: 'json' | 'stream';
  /** Gives the events of a stream the ids that it can be taken up by. */
  events?: EventStore;
  timings: McpTimings;
}

/**
 * One HTTP request through the SDK's transport, which writes the raw response. Both are gone with it: what a session is, the engine
 * knows. Returns what ends it.
 */
export async function exchange(
  request: FastifyRequest,
  reply: FastifyReply,
  server: Server,
  { message, sid, as, events, timings }: ExchangeOptions,
): Promise<() => void> {
  const transport = new StreamableHTTPServerTransport({
    ...(sid !== undefined && { sessionIdGenerator: () => sid }),
    enableJsonResponse: as === 'json',
    keepAliveMs: timings.keepAliveMs,
    ...(events !== undefined && { eventStore: events, retryInterval: timings.retryMs }),
  });
  // The SDK's own type of the interface is stricter about undefined than its class.
  await server.connect(transport as never);
  const end = () => void server.close();
  reply.hijack();
  // A client that vanishes is no error of ours.
  reply.raw.on('error', () => {});
  reply.raw.once('close', end);
  // Settles with the end of a stream; whatever goes wrong, it has answered.
  transport.handleRequest(request.raw, reply.raw, message).catch(end);
  return end;
}

/**
 * Takes a stream up again. The SDK's transports know the streams of their own lifetime only, and ours live as long as a request: so this one is given
 * the request of the broken stream once more, which joins the call that runs. Settles with the end of the stream.
 */
export async function resumeStream(
  request: FastifyRequest,
  reply: FastifyReply,
  server: Server,
  { message, events, timings }: { message: object; events: EventStore; timings: McpTimings },
): Promise<void> {
  const transport = new WebStandardStreamableHTTPServerTransport({
    eventStore: events,
    retryInterval: timings.retryMs,
    keepAliveMs: timings.keepAliveMs,
  });
  await server.connect(transport as never);
  reply.hijack();
  reply.raw.on('error', () => {});
  reply.raw.once('close', () => void server.close());
  const headers = new Headers({ accept: 'application/json, text/event-stream', 'content-type': 'application/json' });
  const version = request.headers['mcp-protocol-version'];
  if (typeof version === 'string') headers.set('mcp-protocol-version', version);
  const again = new Request('http://localhost/', { method: 'POST', headers });
  const answer = await transport.handleRequest(again, { parsedBody: message });
  reply.raw.writeHead(answer.status, Object.fromEntries(answer.headers));
  // The client has to see that it is connected again before there is anything to say.
  reply.raw.flushHeaders();
  if (answer.body === null) return void reply.raw.end();
  // A client that vanishes is no error of ours: it comes again.
  await pipeline(Readable.fromWeb(answer.body as ReadableStream), reply.raw).catch(() => {});
}
