import { Inject, Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { PalestraError } from '@palestra/protocol';
import { type Config, CONFIG } from '../../platform/config.ts';
import { Database } from '../../platform/database/database.ts';
import { countWaiting } from './backlog.sql.ts';

/** How long a count is used. */
const COUNT_TTL_MS = 500;
/** How long an upload waits before it is refused. The official SDK gives up after five refusals, so that a wait must be a part of each. */
const MAX_WAIT_MS = 5_000;
const RETRY_AFTER_S = 2;

/**
 * Slows uploads down while more rollouts wait for derivation than `PALESTRA_MAX_BACKLOG`, so that figures never lag without limit. Only
 * organisations with more than an equal share of that bound wait, so that a burst of one does not delay the others.
 */
@Injectable()
export class Backlog {
  #counted: { at: number; waiting: Promise<ReadonlyMap<string, number>> } | null = null;

  constructor(
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Resolves when an upload of the organisation may be stored. Throws `ingest_overloaded` if that takes longer than five seconds. */
  async waitForRoom(orgId: string): Promise<void> {
    const deadline = performance.now() + MAX_WAIT_MS;
    while (isOverShare(await this.#waiting(), orgId, this.config.maxBacklog)) {
      if (performance.now() >= deadline) {
        throw new PalestraError('ingest_overloaded', {
          detail: `More than ${this.config.maxBacklog} rollouts wait for their figures, and this organisation has more than its share of them. Send the same events again later: nothing of this request was stored.`,
          retryAfterSeconds: RETRY_AFTER_S,
        });
      }
      await delay(COUNT_TTL_MS);
    }
  }

  #waiting(): Promise<ReadonlyMap<string, number>> {
    const now = performance.now();
    if (this.#counted === null || now - this.#counted.at >= COUNT_TTL_MS) {
      // While PostgreSQL restarts, storing the upload waits for it, or refuses. Counted beyond the bound, to see who else waits.
      const waiting = countWaiting(this.database.pool, 2 * this.config.maxBacklog).catch(() => new Map<string, number>());
      this.#counted = { at: now, waiting };
    }
    return this.#counted.waiting;
  }
}

/** `waiting`: rollouts by organisation. */
export function isOverShare(waiting: ReadonlyMap<string, number>, orgId: string, bound: number): boolean {
  const total = [...waiting.values()].reduce((sum, count) => sum + count, 0);
  return total > bound && (waiting.get(orgId) ?? 0) > bound / waiting.size;
}
