import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { outboundAgent, outboundFetch, OutboundPolicy, unrestricted } from '@palestra/outbound';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { InstanceLogStore } from '../logs/instance-log-store.ts';
import { HostingProviders } from '../providers/hosting-providers.ts';
import { InstanceLogs } from './instance-logs.ts';
import { InstanceMetrics } from './instance-metrics.ts';
import { InstanceSpecs } from './instance-specs.ts';
import { Reconciler } from './reconciler.ts';

const CONNECT_MS = 5_000;
const ANSWER_MS = 10_000;

/** Runs the reconciler in processes that run jobs. */
@Injectable()
export class ReconcilerService implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #reconciler: Reconciler;
  readonly #agents: ReturnType<typeof outboundAgent>[];

  // Eight parameters: it joins what the reconciler, which knows no Nest, is made of.
  constructor(
    database: Database,
    providers: HostingProviders,
    specs: InstanceSpecs,
    store: InstanceLogStore,
    metrics: InstanceMetrics,
    policy: OutboundPolicy,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) logger: Logger,
  ) {
    const limits = { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS, pipelining: 0 };
    // The engine itself says where its instances answer; the owner of an environment chooses URLs.
    const [own, remote] = [outboundAgent(unrestricted, CONNECT_MS, limits), outboundAgent(policy, CONNECT_MS, limits)];
    this.#agents = [own, remote];
    const { pool, connectionString } = database;
    this.#reconciler = new Reconciler({
      pool,
      connectionString,
      logger,
      providers: () => providers.all(),
      ceiling: config.limits.instances.org,
      logs: new InstanceLogs(store, (error, instance) => logger.warn({ err: error, instance }, 'the log of an instance was not stored')),
      spec: (id) => specs.load(id),
      poolSpec: (versionId) => specs.loadVersion(versionId),
      fetch: (provider) => outboundFetch(provider === 'remote' ? remote : own),
      ...metrics.hooks,
    });
  }

  onApplicationBootstrap(): void {
    if (this.config.jobs === 'here' && this.config.hosting.engine !== 'off') this.#reconciler.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#reconciler.stop();
    await Promise.all(this.#agents.map((agent) => agent.destroy()));
  }
}
