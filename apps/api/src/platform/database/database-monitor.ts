import type pg from 'pg';
import { isDiskFull } from './database-errors.ts';
import type { RunningPostgres } from './embedded-postgres.ts';
import { openPool } from './pool.ts';

const ASK_MS = 1_000;
const DEADLINE_MS = 2_000;
const ASK = `SELECT EXISTS (SELECT FROM _prisma_migrations WHERE migration_name = $1 AND finished_at IS NOT NULL AND rolled_back_at IS NULL) AS migrated`;

export interface DatabaseState {
  /** Milliseconds since PostgreSQL stopped answering; 0 while it answers. */
  outageMs: number;
  /** PostgreSQL does not run, or refused a statement, for want of disk space. */
  diskFull: boolean;
  /** All migrations of this version are applied, as far as is known. */
  migrated: boolean;
}

/**
 * Asks PostgreSQL for a sign of life once a second. The connection is not one of the pools, so that no load on them is taken for an outage. `newest`: the name of
 * the last migration; `server`: the embedded PostgreSQL, null = one of the operator's.
 */
export class DatabaseMonitor {
  readonly #pool: pg.Pool;
  #timer: NodeJS.Timeout | undefined;
  #asking: Promise<void> = Promise.resolve();
  #answeredAt = performance.now();
  #state: Omit<DatabaseState, 'outageMs'> & { answers: boolean } = { answers: true, diskFull: false, migrated: true };

  constructor(
    url: string,
    readonly newest: string,
    readonly server: Pick<RunningPostgres, 'status'> | null,
  ) {
    this.#pool = openPool({ connectionString: url, max: 1, connectionTimeoutMillis: DEADLINE_MS, query_timeout: DEADLINE_MS });
  }

  async start(): Promise<void> {
    await this.#ask();
    this.#next();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#asking;
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

  #next(): void {
    this.#timer = setTimeout(() => (this.#asking = this.#ask().then(() => this.#next())), ASK_MS);
    this.#timer.unref();
  }

  async #ask(): Promise<void> {
    try {
      const { rows } = await this.#pool.query<{ migrated: boolean }>(ASK, [this.newest]);
      this.#answeredAt = performance.now();
      this.#state = { answers: true, diskFull: false, migrated: rows[0]!.migrated };
    } catch (error) {
      this.#state = { ...this.#state, answers: false, diskFull: isDiskFull(error) };
    }
  }
}
