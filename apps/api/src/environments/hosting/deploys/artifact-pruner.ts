import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { Logger } from 'pino';
import { JobQueue } from '../../../jobs/job-queue.service.ts';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { isEngineAway } from '../providers/engine-away.ts';
import { HostingProviders } from '../providers/hosting-providers.ts';
import { hasOpenDeploys, selectArtifactDigests } from './deploy.sql.ts';

const HOUR_MS = 3_600_000;
const DEADLINE_MS = 600_000;

/** Deletes from the engines what was built or pulled and no version names any more. */
@Injectable()
export class ArtifactPruner implements OnModuleInit {
  constructor(
    private readonly jobs: JobQueue,
    private readonly database: Database,
    private readonly providers: HostingProviders,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.jobs.handle('prune-artifacts', { everyMs: HOUR_MS, deadlineMs: DEADLINE_MS, lane: 'bulk' }, (_payload, signal) =>
      this.prune(signal),
    );
  }

  async prune(signal: AbortSignal): Promise<void> {
    const { pool } = this.database;
    // What they build has no version yet.
    if (await hasOpenDeploys(pool)) return;
    const keep = new Set(await selectArtifactDigests(pool));
    for (const provider of await this.providers.all()) {
      await provider.prune(keep, signal).catch((error: unknown) => {
        if (isEngineAway(error)) return;
        this.logger.warn({ err: error, provider: provider.name }, 'old artifacts were not removed; the next round repeats it');
      });
    }
  }
}
