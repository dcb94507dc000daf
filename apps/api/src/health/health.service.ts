import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { statfs } from 'node:fs/promises';
import { Inject, Injectable } from '@nestjs/common';
import { type Health, PalestraError } from '@palestra/protocol';
import { Authenticator } from '../accounts/authenticator.ts';
import { assertOperatorKey } from '../accounts/owner.ts';
import { hashToken } from '../accounts/secret-token.ts';
import { BundledEnvironments } from '../environments/bundled/bundled-environments.ts';
import { countDueJobs } from '../jobs/job-queue.sql.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { Readiness } from '../platform/database/readiness.ts';
import { keyOf } from '../platform/http/credentials.ts';
import { WORKER } from '../platform/tokens.ts';
import type { WorkerProcess } from '../platform/worker-process.ts';

const CODING_ENV = 'coding_env';
const QUEUE_DEADLINE_MS = 2_000;

/** Health of this process and its dependencies, for the operator. */
@Injectable()
export class HealthService {
  /** The first key of the service. It works on this route also while the database is down. */
  operatorKey: string | null = null;

  constructor(
    private readonly authenticator: Authenticator,
    private readonly readiness: Readiness,
    private readonly database: Database,
    private readonly bundled: BundledEnvironments,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(WORKER) private readonly worker: WorkerProcess | null,
  ) {}

  /** Throws `unauthorized`, `key_revoked` or `key_expired`, and `forbidden` for keys of other organisations than the operator's. */
  async assertOperator(headers: IncomingHttpHeaders): Promise<void> {
    const key = keyOf(headers);
    if (key === null) throw new PalestraError('unauthorized');
    if (this.#isDatabaseDown() && this.operatorKey !== null && isSame(key, this.operatorKey)) return;
    assertOperatorKey(await this.authenticator.ofKey(key), 'This is');
  }

  async details(): Promise<Health> {
    const { monitor } = this.database;
    const state = monitor?.state() ?? { outageMs: 0, diskFull: false, migrated: true };
    const isolation = this.bundled.status(CODING_ENV);
    const embedded = monitor?.server?.status() ?? null;
    return {
      status: this.#status(),
      database: {
        reachable: state.outageMs === 0,
        away_seconds: Math.round(state.outageMs / 1_000),
        disk_full: state.diskFull,
        migrated: state.migrated,
        embedded: embedded && { state: embedded.state, restarts: embedded.restarts, detail: embedded.detail },
      },
      worker: this.worker?.status() ?? null,
      disk: await this.#disk(),
      isolation: isolation.status === 'ready' ? isolation.detail : null,
      queue: state.outageMs === 0 ? await this.#queue() : null,
    };
  }

  #isDatabaseDown(): boolean {
    return (this.database.monitor?.state().outageMs ?? 0) > 0;
  }

  #status(): Health['status'] {
    if (this.readiness.isDraining) return 'draining';
    try {
      return this.readiness.check().status;
    } catch (error) {
      return error instanceof PalestraError && error.code === 'storage_full' ? 'storage_full' : 'database_unavailable';
    }
  }

  async #disk(): Promise<Health['disk']> {
    const found = await statfs(this.config.dataDir).catch(() => null);
    return found && { free_bytes: found.bavail * found.bsize, total_bytes: found.blocks * found.bsize };
  }

  async #queue(): Promise<Health['queue']> {
    const waiting = `SELECT count(*)::int AS n FROM sessions WHERE waiting_on IS NOT NULL`;
    const counting = Promise.all([countDueJobs(this.database.pool), this.database.pool.query<{ n: number }>(waiting)]);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => (timer = setTimeout(() => resolve(null), QUEUE_DEADLINE_MS)));
    const found = await Promise.race([counting, late])
      .catch(() => null)
      .finally(() => clearTimeout(timer));
    if (found === null) return null;
    const [jobs, { rows }] = found;
    return { jobs_due: jobs.reduce((sum, { due }) => sum + due, 0), sessions_waiting: rows[0]!.n };
  }
}

/** Compares hashes, because `timingSafeEqual` needs equal lengths. */
const isSame = (one: string, other: string): boolean => timingSafeEqual(hashToken(one), hashToken(other));
