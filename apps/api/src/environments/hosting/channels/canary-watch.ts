import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { Logger } from 'pino';
import { JobQueue } from '../../../jobs/job-queue.service.ts';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { MOST_UNREADY } from '../instances/decide.ts';
import { notifyHosting } from '../hosting-events.ts';
import { selectStartFacts } from '../instances/instance-status.sql.ts';
import { canaryFault } from './canary.ts';
import { selectEnded } from './canary.sql.ts';
import { withoutCanary } from './channel-changes.ts';
import { type ChannelRecord, ChannelRepository } from './channel.repository.ts';

const EVERY_MS = 5_000;

/** Rolls back a canary whose sessions fail, or whose instances do not start. */
@Injectable()
export class CanaryWatch implements OnModuleInit {
  /** Where the next round begins, so that one that reaches its deadline does not leave out the same canaries. */
  #first = 0;

  constructor(
    private readonly jobs: JobQueue,
    private readonly channels: ChannelRepository,
    private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.jobs.handle('judge-canaries', { everyMs: EVERY_MS, deadlineMs: 60_000 }, (_payload, signal) => this.judge(signal));
  }

  async judge(signal: AbortSignal): Promise<void> {
    const canaries = await this.channels.listCanaries();
    const start = this.#first % Math.max(1, canaries.length);
    for (const channel of [...canaries.slice(start), ...canaries.slice(0, start)]) {
      if (signal.aborted) return;
      this.#first += 1;
      try {
        const fault = await this.#fault(channel);
        if (fault !== null) await this.#rollBack(channel, fault);
      } catch (error) {
        const { environmentId: environment, name } = channel;
        this.logger.warn({ err: error, environment, channel: name }, 'a canary was not judged; the next round repeats it');
      }
    }
  }

  async #fault({ versionId, canaryVersionId, updatedAt }: ChannelRecord): Promise<string | null> {
    const { pool } = this.database;
    const facts = await selectStartFacts(pool, canaryVersionId!);
    if (facts !== null && facts.serving === 0 && facts.unready >= MOST_UNREADY)
      return `its last ${facts.unready} instances ended before they answered`;
    // Sessions of an earlier share of this version do not count, those of the version beside it always do.
    const [canary, stable] = await Promise.all([selectEnded(pool, canaryVersionId!, updatedAt), selectEnded(pool, versionId, null)]);
    return canaryFault(canary, stable);
  }

  async #rollBack({ environmentId, name, canaryVersionId, canaryVersion }: ChannelRecord, fault: string): Promise<void> {
    const reason = `Rolled back automatically from version ${canaryVersion?.number}: ${fault}.`;
    const changed = await this.channels.change(environmentId, name, (stored) =>
      // Someone else may have changed it meanwhile.
      stored?.canaryVersionId === canaryVersionId ? withoutCanary(stored, reason) : null,
    );
    if (changed === null) return;
    this.logger.warn({ environment: environmentId, channel: name, reason }, 'a canary was rolled back');
    await notifyHosting(this.database.pool, environmentId);
  }
}
