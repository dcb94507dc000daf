import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Stage } from '@palestra/dialects';

/** Answers JSON text, or null when it has answered already. */
export type OpenEnvHandler = (stage: Stage, request: FastifyRequest, reply: FastifyReply) => Promise<string | null>;

/** Adds a route below the address of each environment. */
export type AddRoute = (method: 'GET' | 'POST' | 'DELETE', path: string, handler: OpenEnvHandler) => void;

export const bodyOfRequest = ({ body }: FastifyRequest): Buffer | null => (Buffer.isBuffer(body) ? body : null);
