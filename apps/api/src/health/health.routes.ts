import { healthSchema } from '@palestra/protocol/schemas';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { DocumentedRoute } from '../platform/http/openapi.ts';
import type { Readiness } from '../platform/database/readiness.ts';
import type { HealthService } from './health.service.ts';

/** Routes of Fastify instead of Nest, whose guard would query the database before they could report an outage. */
export function addHealthRoutes(server: FastifyInstance, readiness: Readiness, health: HealthService): void {
  server.get('/health/live', async () => ({ status: 'live' }));
  server.get('/health/ready', async () => readiness.check());
  server.get('/v1/health', async ({ headers }) => {
    await health.assertOperator(headers);
    return health.details();
  });
}

export const healthDocumentation: readonly DocumentedRoute[] = [
  {
    method: 'GET',
    path: '/health/live',
    public: true,
    tag: 'Health',
    description: {
      summary: 'The process answers requests, whatever the state of the database',
      response: z.object({ status: z.literal('live') }),
    },
  },
  {
    method: 'GET',
    path: '/health/ready',
    public: true,
    tag: 'Health',
    description: {
      summary: 'The database answers, its migrations are applied, and the process is not draining',
      response: z.object({ status: z.literal('ready') }),
      errors: ['storage_full'],
    },
  },
  {
    method: 'GET',
    path: '/v1/health',
    public: false,
    tag: 'Health',
    description: {
      summary: 'Database, disk, isolation of programs and queues of this process, for the operator',
      response: healthSchema,
      errors: ['forbidden'],
    },
  },
];
