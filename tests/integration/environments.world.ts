import { systemClock } from '@palestra/kit';
import type { Caller } from '@palestra/session';
import { hashToken, newApiKey } from '../../apps/api/src/accounts/secret-token.ts';
import { BackendPool } from '../../apps/api/src/environments/backend.pool.ts';
import { BundledEnvironments } from '../../apps/api/src/environments/bundled/bundled-environments.ts';
import { EnvironmentAccess } from '../../apps/api/src/environments/environment.access.ts';
import { RegistryDirectory } from '../../apps/api/src/environments/environment-directory.ts';
import { DiscoveryService } from '../../apps/api/src/environments/discovery.service.ts';
import { EnvironmentRepository } from '../../apps/api/src/environments/environment.repository.ts';
import { TaskSetRepository } from '../../apps/api/src/environments/task-sets/task-set.repository.ts';
import { Database } from '../../apps/api/src/platform/database.ts';
import { createLogger } from '../../apps/api/src/platform/logger.ts';
import type { TestServer } from '../support/server.ts';

const SCOPES = ['sessions', 'environments', 'rollouts', 'keys'];

/** Another organisation with a user and a key of its own. */
export async function createCaller(server: TestServer, orgName: string): Promise<{ caller: Caller; headers: Record<string, string> }> {
  const { prisma } = server.database;
  const org = await prisma.organisation.create({ data: { name: orgName } });
  const user = await prisma.user.create({ data: { name: `${orgName}-user` } });
  const key = newApiKey();
  const row = await prisma.apiKey.create({
    data: { orgId: org.id, userId: user.id, name: 'test', prefix: key.slice(0, 9), hash: hashToken(key), scopes: SCOPES },
  });
  const caller = {
    userId: user.id,
    orgId: org.id,
    orgName,
    keyId: row.id,
    scopes: SCOPES,
    anonymous: false,
    maxSessions: { key: null, org: null },
  };
  return { caller, headers: { 'x-api-key': key } };
}

export async function ownerOf(server: TestServer): Promise<Caller> {
  const { body } = await server.request('GET', '/v1/me');
  return {
    userId: body.user.id,
    orgId: body.org.id,
    orgName: body.org.name,
    keyId: null,
    scopes: SCOPES,
    anonymous: false,
    maxSessions: { key: null, org: null },
  };
}

/** The directory of a second API process on the same database. */
export function anotherReplica(server: TestServer) {
  const database = new Database(server.config.databaseUrl!, 2);
  let queries = 0;
  const counted = {
    prisma: database.prisma.$extends({
      query: {
        $allOperations({ args, query }) {
          queries += 1;
          return query(args);
        },
      },
    }),
  } as unknown as Database;
  const repository = new EnvironmentRepository(counted);
  const bundled = new BundledEnvironments(server.config, repository, new DiscoveryService(repository), createLogger('silent'));
  const pool = new BackendPool(bundled, new TaskSetRepository(counted), server.config);
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  return {
    directory: new RegistryDirectory(repository, new EnvironmentAccess(repository), pool, server.config, clock),
    /** Lets what it remembers grow old. */
    later: () => (aheadMs += 10_000),
    queries: () => queries,
    async close() {
      await pool.onApplicationShutdown();
      await database.close();
    },
  };
}
