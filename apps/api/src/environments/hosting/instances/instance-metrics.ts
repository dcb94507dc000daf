import { Injectable, type OnModuleInit } from '@nestjs/common';
import { JobQueue } from '../../../jobs/job-queue.service.ts';
import { Database } from '../../../platform/database/database.ts';
import { Metrics } from '../../../platform/telemetry/metrics.ts';
import { countInstances, countWaiting, forgetInstances } from './instance.sql.ts';
import type { ReconcilerOptions } from './reconciler.ts';

const HOUR_MS = 3_600_000;
const KEEP_DAYS = 7;

/** Figures of instances for operators, and how long their rows are kept. */
@Injectable()
export class InstanceMetrics implements OnModuleInit {
  /** What the reconciler of this process reports. */
  readonly hooks: Required<Pick<ReconcilerOptions, 'onReady' | 'onEnd' | 'onPass'>>;

  constructor(
    private readonly database: Database,
    private readonly jobs: JobQueue,
    metrics: Metrics,
  ) {
    const ends = metrics.counter('palestra_instance_ends_total', 'Instances that ended, by how', ['state']);
    const starts = metrics.histogram('palestra_instance_start_seconds', 'From the decision to start an instance to its first answer', []);
    const passes = metrics.histogram('palestra_reconcile_seconds', 'One pass over all instances', []);
    this.hooks = {
      onReady: (ms) => starts.observe(ms / 1_000),
      onEnd: (state) => ends.inc({ state }),
      onPass: (seconds) => passes.observe(seconds),
    };
    // A scrape must not fail while PostgreSQL restarts.
    metrics.gauge('palestra_instances', 'Instances of deployed environments', ['state'], async (gauge) => {
      gauge.reset();
      for (const { state, count } of await countInstances(database.pool).catch(() => [])) gauge.set({ state }, count);
    });
    metrics.gauge('palestra_instance_sessions_waiting', 'Sessions that wait for an instance', [], async (gauge) => {
      gauge.set(await countWaiting(database.pool).catch(() => 0));
    });
  }

  onModuleInit(): void {
    this.jobs.handle('forget-instances', { everyMs: HOUR_MS, deadlineMs: 60_000 }, () => forgetInstances(this.database.pool, KEEP_DAYS));
  }
}
