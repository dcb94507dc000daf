import { Injectable, type OnModuleInit } from '@nestjs/common';
import { JobQueue } from '../jobs/job-queue.service.ts';
import { Database } from '../platform/database/database.ts';
import { LOST_AFTER_MS } from './export.presenter.ts';
import { LakeService } from './lake.service.ts';
import { RolloutExportRunner } from './rollout-export.runner.ts';
import { anyWaiting } from './rollout-export.sql.ts';

/** Exports that are written at the same time, in all processes. */
const CONCURRENCY = 2;
const CHECK_EVERY_MS = 15_000;
const LAKE_EVERY_MS = 15_000;
const HOUR_MS = 3_600_000;

/** Jobs that write exports and the lake, in the API process on a laptop, otherwise in workers. */
@Injectable()
export class ExportJobs implements OnModuleInit {
  constructor(
    private readonly jobs: JobQueue,
    private readonly database: Database,
    private readonly runner: RolloutExportRunner,
    private readonly lake: LakeService,
  ) {}

  onModuleInit(): void {
    this.jobs.handle('export-rollouts', { deadlineMs: 12 * HOUR_MS, lane: 'bulk' }, async (_payload, signal) => {
      while (!signal.aborted && (await this.runner.runOne(signal)));
    });
    // Exports that a crash, a delay or a full queue left.
    this.jobs.handle('look-for-exports', { everyMs: CHECK_EVERY_MS, deadlineMs: CHECK_EVERY_MS }, async () => {
      if (await anyWaiting(this.database.pool, LOST_AFTER_MS)) await this.wake();
    });
    this.jobs.handle('lake', { everyMs: LAKE_EVERY_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, (_payload, signal) => this.lake.write(signal));
  }

  /** Starts the jobs that write exports now. */
  async wake(): Promise<void> {
    for (let lane = 0; lane < CONCURRENCY; lane += 1) {
      const name = `export-rollouts-${lane}`;
      await this.jobs.add('export-rollouts', {}, { key: name, serialKey: name, maxAttempts: 1 });
    }
  }
}
