import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SessionOptions, RequestContext } from '@palestra/openenv/server';
import { readRecording } from '../http/recording-headers.ts';

/** Returns the JSON text of the response; null when it has sent the response itself. */
export type OpenEnvHandler = (context: RequestContext, request: FastifyRequest, reply: FastifyReply) => Promise<string | null>;

/** Adds a route below the address of each environment. */
export type AddRoute = (method: 'GET' | 'POST' | 'DELETE', path: string, handler: OpenEnvHandler) => void;

/** Throws `invalid_request` for a step or task index that is not an integer. */
export function sessionOptionsOf(headers: IncomingHttpHeaders): SessionOptions {
  const { 'x-secrets': secrets } = headers;
  return { recording: readRecording(headers), secrets: typeof secrets === 'string' ? secrets : null };
}

export const bodyOfRequest = ({ body }: FastifyRequest): Buffer | null => (Buffer.isBuffer(body) ? body : null);
