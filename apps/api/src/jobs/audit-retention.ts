import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { recordSystemEvent } from '../accounts/audit/audit.sql.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { JobQueue } from './job-queue.service.ts';

const HOUR_MS = 3_600_000;
const BATCH = 10_000;

/** Deletes events of the audit log that are older than PALESTRA_AUDIT_RETENTION_DAYS, and says in the log how many. */
@Injectable()
export class AuditRetention implements OnModuleInit {
  constructor(
    private readonly jobs: JobQueue,
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  onModuleInit(): void {
    this.jobs.handle('audit-retention', { everyMs: HOUR_MS, deadlineMs: HOUR_MS }, (_payload, signal) => this.sweep(signal));
  }

  async sweep(signal: AbortSignal): Promise<void> {
    const { pool } = this.database;
    const days = this.config.auditRetentionDays;
    let deleted = 0;
    for (let batch = BATCH; batch === BATCH && !signal.aborted; deleted += batch) {
      const { rows } = await pool.query<{ gone: number }>('SELECT audit_log_expire($1::int, $2::int) AS gone', [days, BATCH]);
      batch = rows[0]!.gone;
    }
    if (deleted > 0) await recordSystemEvent(pool, { action: 'audit.expire', details: { events: deleted, older_than_days: days } });
  }
}
