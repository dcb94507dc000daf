import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { type EventStore, StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { McpTimings } from '../../platform/config.ts';
import { onClosed } from '../../platform/http/on-closed.ts';

export interface ExchangeOptions {
  /** The parsed body. */
  message?: unknown;
  /** Sent to the client as its session id with the answer to `initialize`. */
  sid?: string;
  /** `json`: one JSON document at the end. `stream`: an event stream with comments that keep it open. */
  as: 'json' | 'stream';
  /** Assigns ids to events, for resuming. */
  events?: EventStore;
  timings: McpTimings;
}

/**
 * Handles one HTTP request with the SDK's transport, which writes the raw response. Both exist for this request only. Returns a function
 * that ends it.
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
  // The SDK's interface is stricter about undefined than its class.
  await server.connect(transport as never);
  const end = () => void server.close();
  reply.hijack();
  // The client has disconnected.
  reply.raw.on('error', () => {});
  onClosed(reply.raw, end);
  // Settles at the end of the stream; the transport answers errors itself.
  transport.handleRequest(request.raw, reply.raw, message).catch(end);
  return end;
}

/**
 * Resumes a stream. The SDK's transports only know their own streams, and ours live for one request. The transport therefore gets the
 * request of the broken stream again, which joins the running call. Settles at the end of the stream.
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
  onClosed(reply.raw, () => void server.close());
  const headers = new Headers({ accept: 'application/json, text/event-stream', 'content-type': 'application/json' });
  const version = request.headers['mcp-protocol-version'];
  if (typeof version === 'string') headers.set('mcp-protocol-version', version);
  const repeated = new Request('http://localhost/', { method: 'POST', headers });
  const answer = await transport.handleRequest(repeated, { parsedBody: message });
  reply.raw.writeHead(answer.status, Object.fromEntries(answer.headers));
  // The client must see that it is connected before the first event.
  reply.raw.flushHeaders();
  if (answer.body === null) return void reply.raw.end();
  // The client has disconnected and can resume again.
  await pipeline(Readable.fromWeb(answer.body as ReadableStream), reply.raw).catch(() => {});
}
