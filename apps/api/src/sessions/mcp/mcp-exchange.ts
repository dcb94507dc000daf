import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { FastifyReply, FastifyRequest } from 'fastify';

export interface ExchangeOptions {
  /** The body, already parsed. */
  message?: unknown;
  /** Told to the client as its session's id, with the answer of an `initialize`. */
  sid?: string;
  /** One JSON document when all is done, else a stream with comments that keep it open. */
  as: 'json' | 'stream';
}

/**
 * One HTTP request through the SDK's transport, which writes the raw response. Both are gone with it: what a session is, the engine
 * knows. Returns what ends it.
 */
export async function exchange(
  request: FastifyRequest,
  reply: FastifyReply,
  server: Server,
  { message, sid, as }: ExchangeOptions,
): Promise<() => void> {
  const transport = new StreamableHTTPServerTransport({
    ...(sid !== undefined && { sessionIdGenerator: () => sid }),
    enableJsonResponse: as === 'json',
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
