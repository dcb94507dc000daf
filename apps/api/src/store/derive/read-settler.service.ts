import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../platform/config.ts';
import { Database } from '../../platform/database/database.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { selectPending, selectUnsettled, type UnsettledRun } from './derive.sql.ts';
import { DeriveService } from './derive.service.ts';
import { Quarantine } from '../quarantine.ts';

/** Runs and single rollouts that reads derive at the same time. What comes on top waits for the background loop. */
const MAX_RUNNING = 8;
/** With more waiting rollouts than this a run is left to the background, because a read could not derive them in its time. */
const MAX_ROLLOUTS = 1_600;

/** Rollouts whose newest events a run's figures do not show yet, by `seq` of the run. A run whose figures are complete is absent. */
export type PendingRollouts = ReadonlyMap<number, number>;

/**
 * Derives the changes of a run before it is read, so that the read contains all acknowledged events. A read waits at most
 * `PALESTRA_READ_WAIT_MS`; then the derivation continues in the background. Reads that begin while their run is derived share the next derivation.
 */
@Injectable()
export class ReadSettler implements OnApplicationShutdown {
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(
    private readonly database: Database,
    private readonly derive: DeriveService,
    private readonly quarantine: Quarantine,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await Promise.allSettled(this.#running.values());
  }

  /** Returns what is still missing when the read may continue. Throws the error of the derivation, if it failed in time. */
  async settle(runSeqs: readonly number[]): Promise<PendingRollouts> {
    const unsettled = await selectUnsettled(this.database.pool, runSeqs, this.quarantine.members('rollout'), MAX_ROLLOUTS + 1);
    if (unsettled.length === 0) return new Map();
    const small = unsettled.filter(({ waiting }) => waiting <= MAX_ROLLOUTS);
    const settle = (run: UnsettledRun) =>
      this.#next(
        `run ${run.seq}`,
        () => this.derive.settleRun(run),
        () => this.derive.settle([run.seq]),
      );
    await this.#inTime(small.map(settle));
    return selectPending(
      this.database.pool,
      unsettled.map(({ seq }) => seq),
    );
  }

  /** The same for one rollout, by `seq` of its head: its narrow row only. */
  async settleRollout(seq: string): Promise<void> {
    await this.#inTime([this.#next(`rollout ${seq}`, () => this.derive.settleRollout(seq))]);
  }

  async #inTime(work: readonly Promise<unknown>[]): Promise<void> {
    const waiting = new AbortController();
    const timeout = delay(this.config.readWaitMs, undefined, { signal: waiting.signal }).catch(() => {});
    await Promise.race([Promise.all(work), timeout]).finally(() => waiting.abort());
  }

  /**
   * Waits for a running derivation first, because it may have begun before the newest events of this read. Then readers share `again`, which looks
   * for itself what there is to derive.
   */
  async #next(key: string, work: () => Promise<unknown>, again = work): Promise<unknown> {
    const running = this.#running.get(key);
    await running?.catch(() => {});
    return this.#shared(key, running ? again : work);
  }

  #shared(key: string, work: () => Promise<unknown>): Promise<unknown> {
    const running = this.#running.get(key);
    if (running) return running;
    if (this.#running.size >= MAX_RUNNING) return Promise.resolve();
    const started = work().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    started.catch((error: unknown) => this.logger.debug({ err: error, key }, 'a read could not derive what it shows'));
    return started;
  }
}
