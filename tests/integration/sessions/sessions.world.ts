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
import { SessionPlane } from '../../../apps/api/src/sessions/session-plane.ts';
import { openSessionPool } from '../../../apps/api/src/sessions/session-pool.ts';
import type { Backend, EnvironmentDirectory, SessionPolicy } from '@palestra/session';
import { OneEnvironmentDirectory, testCaller } from '../../../libs/session/src/in-process.fixture.ts';

/** One API process of the session plane on a real socket and a real PostgreSQL; keys are names of organisations. */
export interface Replica {
  url: string;
  plane: SessionPlane;
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
  const plane = new SessionPlane({
    pool,
    sockets,
    directory: options.directory ?? new OneEnvironmentDirectory(backend, options),
    authenticate: async (request) => {
      const key = request.headers['x-api-key'];
      if (key === undefined || key === '') return null;
      if (key === 'wrong') throw new PalestraError('unauthorized');
      return testCaller(String(key));
    },
    sendError: (error, request, reply) => filter.send(error, request, reply),
    secrets: new SecretKeys('the same on every replica of the tests'),
    observer: {},
    drainMs: 1_000,
    queue: { limit: 1_000, patienceMs: 60_000, ...options.queue },
    mcp: MCP_TIMINGS,
    orgQuota: null,
    inFlight: new InFlight(readLimits({})),
    checkHealth: () => {},
    version: '0.1.0',
    onBackgroundError: (error) => problems.push(error),
  });
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => filter.send(error, request, reply);
  const server = createFastifyAdapter(refuse).getInstance() as unknown as FastifyInstance;
  prepareFastify(server, { routes, origin: { url: '' }, authenticate: async () => ({}) });
  server.setErrorHandler(refuse);
  server.setNotFoundHandler((request, reply) => filter.send({ statusCode: 404 }, request, reply));
  sockets.listen(server.server, null);
  server.addHook('preClose', async () => sockets.close());
  await plane.register(server);
  await plane.start();
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as AddressInfo;
  await plane.announce(`http://127.0.0.1:${port}`);
  return {
    url: `http://127.0.0.1:${port}`,
    plane,
    pool,
    problems,
    async kill() {
      // Without a database it can neither renew its lease nor say good-bye.
      server.server.closeAllConnections();
      await Promise.all([server.close(), pool.end()]);
    },
    async close() {
      await plane.drain();
      await server.close();
      await plane.stop();
    },
  };
}
