import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { JobQueue } from './job-queue.service.ts';

const HOUR_MS = 3_600_000;
const BATCH = 10_000;

/** Deletes entries of the audit log that are older than PALESTRA_AUDIT_RETENTION_DAYS. The database records each deletion in the log. */
@Injectable()
export class AuditRetention implements OnModuleInit {
  constructor(
    private readonly jobs: JobQueue,
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  onModuleInit(): void {
    this.jobs.handle('audit-retention', { everyMs: HOUR_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, (_payload, signal) => this.sweep(signal));
  }

  async sweep(signal: AbortSignal): Promise<void> {
    for (let deleted = BATCH; deleted === BATCH && !signal.aborted;) {
      const { rows } = await this.database.pool.query<{ deleted: number }>('SELECT audit_log_expire($1::int, $2::int) AS deleted', [
        this.config.auditRetentionDays,
        BATCH,
      ]);
      deleted = rows[0]!.deleted;
    }
  }
}
