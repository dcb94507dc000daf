import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import type { EnvironmentStatus } from '../../environment.presenter.ts';
import { HostedBackend, type HostedVersion, whyNotStarting } from './hosted-backend.ts';
import { InstanceConnections } from './instance-connections.ts';
import { HostingEvents } from '../hosting-events.ts';
import { openServer, type ServerOptions } from './instance-server.ts';
import { InstanceStarter } from './instance-starter.ts';
import { selectStartFacts } from './instance-status.sql.ts';

/** Makes the backends of versions that run here. */
@Injectable()
export class HostedBackends {
  constructor(
    private readonly database: Database,
    private readonly connections: InstanceConnections,
    private readonly events: HostingEvents,
    private readonly starter: InstanceStarter,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** A version without an instance is ready: its next session starts one. */
  async status(versionId: string): Promise<EnvironmentStatus> {
    const facts = await selectStartFacts(this.database.pool, versionId);
    if (facts === null || facts.ready > 0) return { status: 'ready', detail: null };
    const problem = whyNotStarting(facts, this.config.limits.instances.org, true);
    if (problem !== null) return { status: 'unreachable', detail: problem.message };
    if (facts.serving > 0) return { status: 'starting', detail: 'Its first instance starts.' };
    return { status: 'ready', detail: 'No instance runs now. The next session starts one.' };
  }

  create(version: HostedVersion, server: ServerOptions): HostedBackend {
    const { connections, events, starter, logger } = this;
    return new HostedBackend(version, {
      pool: this.database.pool,
      connections,
      events,
      starter,
      logger,
      ceiling: this.config.limits.instances.org,
      open: (endpoint) => openServer(version.protocol, endpoint, server),
    });
  }
}
