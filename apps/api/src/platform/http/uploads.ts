import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import type { InFlight } from '../limits.ts';
import { type BodyConfig, INGEST_BODY_LIMIT, isStreamed } from './body.ts';
import { onClosed } from './on-closed.ts';

/** How long an upload waits for others to end. Then the SDK sends it again (docs/reference/ors.md#batches). */
const PATIENCE_MS = 20_000;

/**
 * Limits concurrent uploads per key and organisation, because their bodies are in memory until they are stored. Further uploads wait
 * unread. Bodies without a key are small.
 */
export function limitUploads(
  fastify: FastifyInstance,
  inFlight: InFlight,
  authenticate: (request: FastifyRequest) => Promise<Caller | null>,
): void {
  const enter = async (request: FastifyRequest, reply: FastifyReply) => {
    const config = request.routeOptions.config as BodyConfig;
    if ((config.bodyLimit ?? 0) < INGEST_BODY_LIMIT && !isStreamed(config, request.headers['content-type'])) return;
    // The body parser refuses a wrong key.
    const caller = await authenticate(request).catch(() => null);
    if (caller === null) return;
    const release = await inFlight.enterWhenFree('uploads', caller, PATIENCE_MS, 'ingest_overloaded');
    onClosed(reply.raw, release);
  };
  fastify.addHook('onRoute', (route) => {
    const { bodyLimit = 0, streamBody = false, streamTypes = [] } = (route.config ?? {}) as BodyConfig;
    if (bodyLimit >= INGEST_BODY_LIMIT || streamBody || streamTypes.length > 0) route.preParsing = [route.preParsing ?? [], enter].flat();
  });
}
