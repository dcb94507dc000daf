import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import type { InFlight } from '../limits.ts';
import { type BodyConfig, INGEST_BODY_LIMIT } from './body.ts';

/** An upload that finds no room waits for others to end; the SDK then sends it again (openreward-wire.md 13.5). */
const PATIENCE_MS = 20_000;

/**
 * Bodies of uploads are held in memory until they are stored. A key and an organisation have a number of them at the same time; more wait
 * unread. Without a key they are as small as all others.
 */
export function limitUploads(
  fastify: FastifyInstance,
  inFlight: InFlight,
  authenticate: (request: FastifyRequest) => Promise<Caller | null>,
): void {
  const enter = async (request: FastifyRequest, reply: FastifyReply) => {
    // A wrong key is refused where the body is parsed.
    const caller = await authenticate(request).catch(() => null);
    if (caller === null) return;
    const release = await inFlight.enterWhenFree('uploads', caller, PATIENCE_MS, 'ingest_overloaded');
    if (reply.raw.closed) release();
    else reply.raw.once('close', release);
  };
  fastify.addHook('onRoute', (route) => {
    const { bodyLimit = 0, streamBody = false } = (route.config ?? {}) as BodyConfig;
    if (bodyLimit >= INGEST_BODY_LIMIT || streamBody) route.preParsing = [route.preParsing ?? [], enter].flat();
  });
}
