import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { JobQueue } from '../../jobs/job-queue.service.ts';
import { CompactService } from './compact.service.ts';
import { EraseService } from './erase.service.ts';
import { ObjectGarbage } from './garbage.service.ts';
import { PartitionService } from './partition.service.ts';
import { RetentionService } from './retention.service.ts';
import { SealService } from './seal.service.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The regular jobs of the store. The next run continues what a deadline or a crash interrupts. */
@Injectable()
export class StoreJobs implements OnModuleInit, OnApplicationBootstrap {
  constructor(
    private readonly jobs: JobQueue,
    private readonly sealing: SealService,
    private readonly packs: CompactService,
    private readonly partitions: PartitionService,
    private readonly retention: RetentionService,
    private readonly eraser: EraseService,
    private readonly garbage: ObjectGarbage,
  ) {}

  onModuleInit(): void {
    const { jobs } = this;
    jobs.handle('seal', { everyMs: 15_000, deadlineMs: 10 * MINUTE_MS }, (_payload, signal) => this.sealing.seal(signal));
    jobs.handle('compact', { everyMs: MINUTE_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, (_payload, signal) => this.packs.compact(signal));
    jobs.handle('partitions', { everyMs: HOUR_MS, deadlineMs: MINUTE_MS }, () => this.partitions.maintain());
    jobs.handle('retention', { everyMs: HOUR_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, (_payload, signal) => this.retention.sweep(signal));
    jobs.handle('texts', { everyMs: HOUR_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, (_payload, signal) => this.retention.sweepTexts(signal));
    jobs.handle('sessions', { everyMs: HOUR_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, (_payload, signal) =>
      this.retention.sweepSessions(signal),
    );
    jobs.handle('erase', { everyMs: MINUTE_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, async (_payload, signal) => {
      try {
        await this.eraser.eraseHidden(signal);
      } finally {
        await this.eraser.eraseEnded(signal);
      }
    });
    jobs.handle('garbage', { everyMs: 10 * MINUTE_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, (_payload, signal) =>
      this.garbage.sweep(signal),
    );
  }

  /** Before the first upload: rows that arrive without a partition of their day stay in the default partition, which is never dropped. */
  async onApplicationBootstrap(): Promise<void> {
    await this.partitions.maintain();
  }
}
