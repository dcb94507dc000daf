import type { FastifyInstance } from 'fastify';

/** How long a browser remembers the answer to a preflight request, seconds. */
const PREFLIGHT_S = 600;

/**
 * Lets pages of these origins call the API with an API key (Cross-Origin Resource Sharing). Browsers send such requests without cookies,
 * because no answer allows credentials. Pages of other origins get no such header, so browsers keep the answers from them.
 */
export function allowOrigins(fastify: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const allowed = new Set(origins);
  fastify.addHook('onRequest', async ({ method, headers }, reply) => {
    const { raw } = reply;
    raw.setHeader('vary', 'Origin');
    if (headers.origin === undefined || !allowed.has(headers.origin)) return;
    raw.setHeader('access-control-allow-origin', headers.origin);
    raw.setHeader('access-control-expose-headers', '*');
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return;
    raw.setHeader('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE');
    // The wildcard does not include Authorization.
    raw.setHeader('access-control-allow-headers', '*, Authorization');
    raw.setHeader('access-control-max-age', PREFLIGHT_S);
    return reply.status(204).send();
  });
}
