import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../platform/config.ts';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { DeriveService } from './derive.service.ts';
import { type Lane, selectDueLanes } from './derive.sql.ts';
import { SearchIndex } from './search/search-index.service.ts';
import { RollupService } from '../figures/rollup.service.ts';
import { runStagesConcurrently } from '../quarantine.ts';
import { VerifyService } from './verify/verify.service.ts';

const IDLE_MS = 700;
/** After this time, or when all is done, locks are released, so that another process may take its turn. */
const SLICE_MS = 1_000;
const AFTER_ERROR_MS = 2_000;
/** Advisory lock that every process that derives shares; who holds it alone pauses all of them. An arbitrary number that no other program locks. */
export const DERIVE_LOCK = 7_210_563_905;
/** Advisory locks of lanes: this number, the number of the stage, the number of the lane. */
const LANE_LOCK = 10 * DERIVE_LOCK;
/** Processes that can work on one stage at a time. */
const LANES = 4;

/**
 * Derives in the background. Each stage is split into lanes, and a process works on the lanes that no other process holds: processes share
 * the work, and those that are left take over the lanes of one that stops or dies.
 */
@Injectable()
export class DeriveLoop implements OnApplicationBootstrap, OnApplicationShutdown {
  #stopped = false;
  #isBehind = false;
  readonly #nextLane = new Map<number, number>();
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
      const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock_shared($1) AS locked', [DERIVE_LOCK]);
      if (!rows[0]!.locked) return false;
      try {
        const until = performance.now() + SLICE_MS;
        const isOver = () => this.#stopped || performance.now() > until;
        const due = await selectDueLanes(client, LANES);
        // PostgreSQL and this process work at the same time, and a slow stage does not delay the others.
        return await runStagesConcurrently(
          isOver,
          async () => (this.#isBehind = await this.#inLanes(client, 1, due.rows, isOver, (lane) => this.derive.deriveRound(lane))),
          // Its marks are locks already: processes take different steps.
          () => this.rollups.round(),
          () => this.#inLanes(client, 2, due.search, isOver, (lane) => this.search.round(lane)),
          // Rollouts are compared with the ledger when their narrow rows are up to date. One lane, because a session belongs to one rollout.
          async () => !this.#isBehind && (await this.#inLane(client, 3, { number: 0, of: 1 }, isOver, () => this.verify.round())),
        );
      } finally {
        await client.query('SELECT pg_advisory_unlock_shared($1)', [DERIVE_LOCK]);
      }
    } finally {
      client.release();
    }
  }

  /** Rounds in those lanes that no other process holds. Begins where the last call ended, so that no lane starves the others. */
  async #inLanes(
    client: pg.PoolClient,
    stage: number,
    due: ReadonlySet<number>,
    isOver: () => boolean,
    round: (lane: Lane) => Promise<boolean>,
  ): Promise<boolean> {
    let more = false;
    for (let turn = 0; turn < LANES && !isOver(); turn += 1) {
      const number = this.#nextLane.get(stage) ?? 0;
      this.#nextLane.set(stage, (number + 1) % LANES);
      if (due.has(number) && (await this.#inLane(client, stage, { number, of: LANES }, isOver, round))) more = true;
    }
    return more;
  }

  /** Rounds in a lane, if no other process holds it, until nothing is left. True when there is more work now. */
  async #inLane(
    client: pg.PoolClient,
    stage: number,
    lane: Lane,
    isOver: () => boolean,
    round: (lane: Lane) => Promise<boolean>,
  ): Promise<boolean> {
    const key = LANE_LOCK + stage * LANES + lane.number;
    const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [key]);
    if (!rows[0]!.locked) return false;
    try {
      let more = await round(lane);
      while (more && !isOver()) more = await round(lane);
      return more;
    } finally {
      await client.query('SELECT pg_advisory_unlock($1)', [key]);
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => (clearTimeout(timer), resolve());
    });
  }
}
