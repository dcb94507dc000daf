import type { AddressInfo } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import { PalestraError } from '@palestra/protocol';
import { MCP_TIMINGS } from '../../../apps/api/src/platform/config.ts';
import { createFastifyAdapter, prepareFastify } from '../../../apps/api/src/platform/http/fastify.ts';
import { ErrorFilter } from '../../../apps/api/src/platform/http/error.filter.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { RouteTable } from '../../../apps/api/src/platform/http/route-table.ts';
import { Sockets } from '../../../apps/api/src/platform/http/sockets.ts';
import { InFlight, readLimits } from '../../../apps/api/src/platform/limits.ts';
import { SecretKeys } from '../../../apps/api/src/platform/secret-keys.ts';
import { SessionServer } from '../../../apps/api/src/sessions/server/session-server.ts';
import { protocols } from '../../../apps/api/src/sessions/protocols.ts';
import { openSessionPool } from '../../../apps/api/src/sessions/persistence/session-pool.ts';
import type { Backend, EnvironmentDirectory, SessionPolicy } from '@palestra/session';
import { OneEnvironmentDirectory, testCaller } from '../../../libs/session/src/in-process.fixture.ts';

/** One API process of the session plane on a real socket and a real PostgreSQL; keys are names of organisations. */
export interface Replica {
  url: string;
  server: SessionServer;
  pool: pg.Pool;
  problems: unknown[];
  /** As `kill -9`: its lease runs out, nothing is handed over. */
  kill(): Promise<void>;
  /** As SIGTERM. */
  close(): Promise<void>;
}

export async function startReplica(
  databaseUrl: string,
  backend: Backend,
  options: {
    policy?: Partial<SessionPolicy>;
    owned?: boolean;
    queue?: { limit?: number; patienceMs?: number };
    fallback?: boolean;
    directory?: EnvironmentDirectory;
  } = {},
): Promise<Replica> {
  const pool = openSessionPool(databaseUrl);
  const routes = new RouteTable();
  const filter = new ErrorFilter(createLogger('silent'), routes);
  const problems: unknown[] = [];
  const sockets = new Sockets();
  const server = new SessionServer({
    pool,
    directory: options.directory ?? new OneEnvironmentDirectory(backend, options),
    secrets: new SecretKeys('the same on every replica of the tests'),
    observer: {},
    drainMs: 1_000,
    queue: { limit: 1_000, patienceMs: 60_000, ...options.queue },
    orgQuota: null,
    onBackgroundError: (error) => problems.push(error),
  });
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => filter.send(error, request, reply);
  const fastify = createFastifyAdapter(refuse).getInstance() as unknown as FastifyInstance;
  prepareFastify(fastify, { routes, origin: { url: '' }, authenticate: async () => ({}) });
  fastify.setErrorHandler(refuse);
  fastify.setNotFoundHandler((request, reply) => filter.send({ statusCode: 404 }, request, reply));
  sockets.listen(fastify.server, null);
  fastify.addHook('preClose', async () => sockets.close());
  await server.mount(fastify, protocols, {
    sockets,
    authenticate: async (request) => {
      const key = request.headers['x-api-key'];
      if (key === undefined || key === '') return null;
      if (key === 'wrong') throw new PalestraError('unauthorized');
      return testCaller(String(key));
    },
    sendError: (error, request, reply) => filter.send(error, request, reply),
    config: { mcp: MCP_TIMINGS },
    // Without an engine.
    sandboxes: { plainHosts: [], wanted: () => Promise.reject(new PalestraError('hosting_unsupported')) },
    inFlight: new InFlight(readLimits({})),
    checkHealth: () => {},
  });
  await server.start();
  await fastify.listen({ host: '127.0.0.1', port: 0 });
  const { port } = fastify.server.address() as AddressInfo;
  await server.announce(`http://127.0.0.1:${port}`);
  return {
    url: `http://127.0.0.1:${port}`,
    server,
    pool,
    problems,
    async kill() {
      // Without a database it can neither renew its lease nor say good-bye.
      fastify.server.closeAllConnections();
      await Promise.all([fastify.close(), pool.end()]);
    },
    async close() {
      await server.drain();
      await fastify.close();
      await server.stop();
    },
  };
}
