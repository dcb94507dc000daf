import type { FastifyInstance } from 'fastify';
import type { Metrics } from './metrics.ts';

/** Measures every request under its route's pattern, never under the path that the client sent. Call it before routes are added. */
export function measureRequests(fastify: FastifyInstance, metrics: Metrics): void {
  fastify.addHook('onResponse', async (request, reply) => {
    const route = request.is404 || request.routeOptions.url === '/*' ? 'none' : (request.routeOptions.url ?? 'none');
    const status = `${Math.floor(reply.statusCode / 100)}xx`;
    metrics.httpDuration.observe({ method: request.method, route, status }, reply.elapsedTime / 1_000);
  });
}
