import { setTimeout as delay } from 'node:timers/promises';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../platform/config.ts';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { RollupService } from '../figures/rollup.service.ts';
import { DeriveService } from './derive.service.ts';
import { DUE_STAGES, type DueStages } from './due-stages.sql.ts';
import { LaneLocks } from './lane-locks.ts';
import { SearchIndex } from './search/search-index.service.ts';
import { VerifyService } from './verify/verify.service.ts';

const IDLE_MS = 700;
const AFTER_ERROR_MS = 2_000;
/** Loops of one process over the lanes of narrow rows: PostgreSQL writes one batch while the process normalises another. */
const ROW_LOOPS = 2;

/** More than the loops of a few processes, so that each finds a free one. */
const ROW_LANES = 8;
const SEARCH_LANES = 4;
/** Lanes of the stages; at most one process works on a lane. Rows are divided by rollout, search by run, figures by their marks. */
export const ROWS = Array.from({ length: ROW_LANES }, (_, lane) => lane);
const SEARCH = Array.from({ length: SEARCH_LANES }, (_, lane) => 100 + lane);
const FIGURES = [200, 201];
const UPKEEP = [300];
const LEDGER = [400];
export const LANES = [ROWS, SEARCH, FIGURES, UPKEEP, LEDGER].flat();

/**
 * Derives in the background, in every process with jobs. Each loop locks a lane, does one batch, and releases the lane, so that processes
 * take turns, one that dies leaves its lanes to the others, and a slow or failing lane does not delay the other ones.
 */
@Injectable()
export class DeriveLoop implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #stopping = new AbortController();
  readonly #lanes: LaneLocks;
  #due: Promise<DueStages> | null = null;
  /** Ends the pause of idle loops. */
  #wake = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly database: Database,
    private readonly derive: DeriveService,
    private readonly rollups: RollupService,
    private readonly search: SearchIndex,
    private readonly verify: VerifyService,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#lanes = new LaneLocks(database);
  }

  onApplicationBootstrap(): void {
    if (this.config.jobs !== 'here') return;
    const { derive, rollups, search, verify } = this;
    const rowLoop = () =>
      this.#loop(
        'rows',
        () => derive.dueLanes(ROW_LANES),
        (lane) => derive.deriveLane({ number: lane, of: ROW_LANES }),
      );
    // The first lane of search has work that belongs to no run.
    const searchLanes = async () => [SEARCH[0]!, ...(await search.dueLanes(SEARCH_LANES)).map((lane) => SEARCH[lane]!)];
    this.#running = Promise.all([
      ...Array.from({ length: ROW_LOOPS }, rowLoop),
      this.#loop(
        'figures',
        async () => ((await rollups.isDue()) ? FIGURES : []),
        () => rollups.round(),
      ),
      this.#loop(
        'upkeep',
        async () => UPKEEP,
        () => derive.upkeep(),
      ),
      this.#loop('search', searchLanes, (lane) => search.round({ number: SEARCH.indexOf(lane), of: SEARCH_LANES })),
      this.#loop(
        'ledger',
        async () => LEDGER,
        () => verify.round(),
      ),
    ]);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopping.abort();
    this.#wake.abort();
    await this.#running;
    await this.#lanes.close();
  }

  /** `batch` returns whether there may be more work. Without more the loop waits until its stage is due. */
  async #loop(stage: keyof DueStages, due: () => Promise<readonly number[]>, batch: (lane: number) => Promise<boolean>): Promise<void> {
    const { signal } = this.#stopping;
    let isBusy = true;
    for (let turn = 0; !signal.aborted; turn += 1) {
      try {
        if (!isBusy && !(await this.#dueStages())[stage]) continue;
        const wasBusy = isBusy;
        isBusy = await this.#batchOfAnyLane(await due(), turn, batch);
        if (wasBusy && !isBusy) this.#wake.abort();
      } catch (error) {
        if (signal.aborted) return;
        isBusy = false;
        this.logger.warn({ err: error }, 'rollouts were not derived; the next round repeats it');
        await delay(AFTER_ERROR_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** What is due after a pause, or as soon as a loop has no more work: other stages continue with what it wrote. Shared by all idle loops. */
  #dueStages(): Promise<DueStages> {
    this.#due ??= this.#selectDue().finally(() => (this.#due = null));
    return this.#due;
  }

  async #selectDue(): Promise<DueStages> {
    this.#wake = new AbortController();
    await delay(IDLE_MS, undefined, { signal: this.#wake.signal }).catch(() => {});
    this.#stopping.signal.throwIfAborted();
    const due = await this.#lanes.select<DueStages>('derive-due-stages', DUE_STAGES);
    return { ...due, upkeep: due.upkeep || this.derive.mayBeOutdated() };
  }

  /** A batch of each free lane, until one has more work. Starts at another lane each time. */
  async #batchOfAnyLane(lanes: readonly number[], turn: number, batch: (lane: number) => Promise<boolean>): Promise<boolean> {
    for (let at = 0; at < lanes.length; at += 1) {
      const lane = lanes[(turn + at) % lanes.length]!;
      if (await this.#lanes.withLane(lane, () => batch(lane))) return true;
    }
    return false;
  }
}
