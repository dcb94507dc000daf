import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../platform/config.ts';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { DeriveService } from './derive.service.ts';
import { SearchIndex } from './search/search-index.service.ts';
import { RollupService } from '../figures/rollup.service.ts';
import { runStagesConcurrently } from '../quarantine.ts';
import { VerifyService } from './verify/verify.service.ts';

const IDLE_MS = 700;
/** After this time, or when all is done, the lock is released, so that another process may take its turn. */
const SLICE_MS = 1_000;
const AFTER_ERROR_MS = 2_000;
/** The advisory lock of the replica that derives; an arbitrary number that no other program locks. */
export const DERIVE_LOCK = 7_210_563_905;

/** Derives in the background, in the process that holds the lock. When it stops or dies another process takes over. */
@Injectable()
export class DeriveLoop implements OnApplicationBootstrap, OnApplicationShutdown {
  #stopped = false;
  #isBehind = false;
  #running: Promise<void> = Promise.resolve();
  #wake: () => void = () => {};

  constructor(
    private readonly database: Database,
    private readonly derive: DeriveService,
    private readonly rollups: RollupService,
    private readonly search: SearchIndex,
    private readonly verify: VerifyService,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    if (this.config.jobs === 'here') this.#running = this.#run();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopped = true;
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      let pause = IDLE_MS;
      try {
        if (await this.#lockedRound()) pause = 0;
      } catch (error) {
        pause = AFTER_ERROR_MS;
        this.logger.warn({ err: error }, 'rollouts were not derived; the next round repeats it');
      }
      if (pause > 0) await this.#sleep(pause);
    }
  }

  /** True when there is more work now. */
  async #lockedRound(): Promise<boolean> {
    const client = await this.database.pool.connect();
    try {
      const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [DERIVE_LOCK]);
      if (!rows[0]!.locked) return false;
      try {
        const until = performance.now() + SLICE_MS;
        // PostgreSQL and this process work at the same time, and a slow stage does not delay the others.
        return await runStagesConcurrently(
          () => this.#stopped || performance.now() > until,
          async () => (this.#isBehind = await this.derive.deriveRound()),
          () => this.rollups.round(),
          () => this.search.round(),
          // Rollouts are compared with the ledger when their narrow rows are up to date.
          async () => !this.#isBehind && (await this.verify.round()),
        );
      } finally {
        await client.query('SELECT pg_advisory_unlock($1)', [DERIVE_LOCK]);
      }
    } finally {
      client.release();
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => (clearTimeout(timer), resolve());
    });
  }
}
