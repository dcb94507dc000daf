import type pg from 'pg';
import { isDiskFull } from './database-errors.ts';
import type { RunningPostgres } from './embedded-postgres.ts';
import { openPool } from './pool.ts';

const INTERVAL_MS = 1_000;
const DEADLINE_MS = 2_000;
const PROBE = `SELECT EXISTS (SELECT FROM _prisma_migrations WHERE migration_name = $1 AND finished_at IS NOT NULL AND rolled_back_at IS NULL) AS migrated`;

export interface DatabaseState {
  /** Milliseconds since PostgreSQL stopped answering; 0 while it answers. */
  outageMs: number;
  /** PostgreSQL does not run, or refused a statement, because its disk is full. */
  diskFull: boolean;
  /** All migrations of this version were applied at the last probe. */
  migrated: boolean;
}

/**
 * Probes PostgreSQL every `intervalMs`, over a connection outside of the pools, so that a busy pool does not look like an outage. `newest`: the
 * name of the last migration. `server`: the embedded PostgreSQL; null = the operator runs PostgreSQL.
 */
export class DatabaseMonitor {
  readonly #pool: pg.Pool;
  #timer: NodeJS.Timeout | undefined;
  #probing: Promise<void> = Promise.resolve();
  #answeredAt = performance.now();
  #state: Omit<DatabaseState, 'outageMs'> & { answers: boolean } = { answers: true, diskFull: false, migrated: true };

  constructor(
    url: string,
    readonly newest: string,
    readonly server: Pick<RunningPostgres, 'status'> | null,
    private readonly intervalMs = INTERVAL_MS,
  ) {
    this.#pool = openPool({ connectionString: url, max: 1, connectionTimeoutMillis: DEADLINE_MS, query_timeout: DEADLINE_MS });
  }

  async start(): Promise<void> {
    await this.#probe();
    this.#schedule();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#probing;
    clearTimeout(this.#timer);
    await this.#pool.end();
  }

  state(): DatabaseState {
    const { answers, diskFull, migrated } = this.#state;
    const status = this.server?.status();
    const isDown = status !== undefined && status.state !== 'running';
    return {
      outageMs: answers && !isDown ? 0 : performance.now() - this.#answeredAt,
      diskFull: isDown ? status.fault === 'disk_full' : diskFull,
      migrated,
    };
  }

  #schedule(): void {
    this.#timer = setTimeout(() => (this.#probing = this.#probe().then(() => this.#schedule())), this.intervalMs);
    this.#timer.unref();
  }

  async #probe(): Promise<void> {
    try {
      const { rows } = await this.#pool.query<{ migrated: boolean }>(PROBE, [this.newest]);
      this.#answeredAt = performance.now();
      this.#state = { answers: true, diskFull: false, migrated: rows[0]!.migrated };
    } catch (error) {
      this.#state = { ...this.#state, answers: false, diskFull: isDiskFull(error) };
    }
  }
}
