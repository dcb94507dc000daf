import { OutboundPolicy } from '@palestra/outbound';
import { systemClock } from '@palestra/kit';
import { BackendPool } from '../../../apps/api/src/environments/backend.pool.ts';
import { BundledEnvironments } from '../../../apps/api/src/environments/bundled/bundled-environments.ts';
import { EnvironmentAccess } from '../../../apps/api/src/environments/environment.access.ts';
import { RegistryDirectory } from '../../../apps/api/src/environments/environment-directory.ts';
import { DiscoveryService } from '../../../apps/api/src/environments/discovery.service.ts';
import { ChannelRepository } from '../../../apps/api/src/environments/hosting/channels/channel.repository.ts';
import { HostingEvents } from '../../../apps/api/src/environments/hosting/hosting-events.ts';
import { HostedBackends } from '../../../apps/api/src/environments/hosting/instances/hosted-backends.ts';
import { InstanceConnections } from '../../../apps/api/src/environments/hosting/instances/instance-connections.ts';
import { InstanceStarter } from '../../../apps/api/src/environments/hosting/instances/instance-starter.ts';
import { EnvironmentRepository } from '../../../apps/api/src/environments/environment.repository.ts';
import { TaskSetRepository } from '../../../apps/api/src/environments/task-sets/task-set.repository.ts';
import { Database } from '../../../apps/api/src/platform/database/database.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import type { TestServer } from '../../support/server.ts';

/** The directory of a second API process on the same database. */
export function anotherReplica(server: TestServer, databaseUrl = server.config.databaseUrl!) {
  const database = new Database(databaseUrl, 2);
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
  const events = new HostingEvents(database);
  const starter = new InstanceStarter(database, server.config);
  const connections = new InstanceConnections(database, events);
  const hosted = new HostedBackends(database, connections, events, starter, server.config, createLogger('silent'));
  const pool = new BackendPool(bundled, new TaskSetRepository(counted), server.config, new OutboundPolicy('allowed'), hosted);
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  return {
    directory: new RegistryDirectory(
      repository,
      new EnvironmentAccess(repository),
      pool,
      new ChannelRepository(database),
      events,
      server.config,
      clock,
    ),
    /** Lets what it remembers grow old. */
    later: () => (aheadMs += 10_000),
    queries: () => queries,
    async close() {
      await pool.onApplicationShutdown();
      await database.close();
    },
  };
}
