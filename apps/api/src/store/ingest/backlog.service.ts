import { Inject, Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { PalestraError } from '@palestra/protocol';
import { type Config, CONFIG } from '../../platform/config.ts';
import { Database } from '../../platform/database/database.ts';
import { countDirty } from './backlog.sql.ts';

/** How long a count is used. */
const COUNT_TTL_MS = 500;
/** How long an upload waits before it is refused. The official SDK gives up after five refusals, so that a wait must be a part of each. */
const MAX_WAIT_MS = 5_000;
const RETRY_AFTER_S = 2;

/** Slows uploads down while more rollouts wait for derivation than `PALESTRA_MAX_BACKLOG`, so that figures never lag without limit. */
@Injectable()
export class Backlog {
  #counted: { at: number; isFull: Promise<boolean> } | null = null;

  constructor(
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Resolves when an upload may be stored. Throws `ingest_overloaded` if that takes longer than five seconds. */
  async waitForRoom(): Promise<void> {
    const deadline = performance.now() + MAX_WAIT_MS;
    while (await this.#isFull()) {
      if (performance.now() >= deadline) {
        throw new PalestraError('ingest_overloaded', {
          detail: `More than ${this.config.maxBacklog} rollouts wait for their figures. Send the same events again later: nothing of this request was stored.`,
          retryAfterSeconds: RETRY_AFTER_S,
        });
      }
      await delay(COUNT_TTL_MS);
    }
  }

  #isFull(): Promise<boolean> {
    const now = performance.now();
    if (this.#counted === null || now - this.#counted.at >= COUNT_TTL_MS) {
      // While PostgreSQL restarts, storing the upload waits for it, or refuses.
      const isFull = countDirty(this.database.pool, this.config.maxBacklog + 1).then(
        (waiting) => waiting > this.config.maxBacklog,
        () => false,
      );
      this.#counted = { at: now, isFull };
    }
    return this.#counted.isFull;
  }
}
