import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../../platform/database/database.ts';
import { EraseService } from './erase.service.ts';
import type { ErasableRollout } from './erase.sql.ts';
import { eraseExpiredSessions } from './ledger-retention.sql.ts';
import { eraseDueTexts, eraseExpiredTexts } from './text-retention.sql.ts';
import {
  selectExpired,
  selectExpiredStrays,
  selectRetainedRuns,
  updateOrganisationRetention,
  updateRunRetention,
} from './retention.sql.ts';

const BATCH = 500;

/**
 * Erases rollouts whose time has run out: so many days after the last event of each, by their run's setting or else their
 * organisation's. A run that is empty then stays: an upload may be on its way to it.
 */
@Injectable()
export class RetentionService {
  constructor(
    private readonly database: Database,
    private readonly eraser: EraseService,
  ) {}

  /** `days` from 1; null = as the organisation says. False when the organisation has no such run. */
  setOfRun(orgId: string, runId: string, days: number | null): Promise<boolean> {
    return updateRunRetention(this.database.pool, orgId, runId, days);
  }

  /** `days` from 1; null = for ever, where a run does not say otherwise. */
  setOfOrganisation(orgId: string, days: number | null): Promise<void> {
    return updateOrganisationRetention(this.database.pool, orgId, days);
  }

  /** Answers how many rollouts were erased. What an aborted sweep leaves is the next one's. */
  async sweep(signal?: AbortSignal): Promise<number> {
    const { pool } = this.database;
    let erased = await this.#eraseAll(() => selectExpiredStrays(pool, BATCH), signal);
    for (const run of await selectRetainedRuns(pool)) {
      if (signal?.aborted) break;
      erased += await this.#eraseAll(() => selectExpired(pool, run, BATCH), signal);
    }
    return erased;
  }

  /**
   * Erases what is kept of text sessions beside their calls: a day after their rollout was complete, and of those without a rollout when their
   * organisation's time has run out since their end. Answers of how many.
   */
  sweepTexts(signal?: AbortSignal): Promise<number> {
    return this.#sweepBy([eraseDueTexts, eraseExpiredTexts], signal);
  }

  /** Erases sessions with their calls when their organisation's time has run out since their end. Answers how many. */
  sweepSessions(signal?: AbortSignal): Promise<number> {
    return this.#sweepBy([eraseExpiredSessions], signal);
  }

  /** `erases`: each erases so many at most, and answers how many. */
  async #sweepBy(erases: ((pool: pg.Pool, limit: number) => Promise<number>)[], signal?: AbortSignal): Promise<number> {
    let erased = 0;
    for (const erase of erases) {
      for (let gone = BATCH; gone === BATCH && !signal?.aborted; erased += gone) gone = await erase(this.database.pool, BATCH);
    }
    return erased;
  }

  async #eraseAll(next: () => Promise<ErasableRollout[]>, signal?: AbortSignal): Promise<number> {
    for (let erased = 0; ;) {
      const rollouts = signal?.aborted ? [] : await next();
      if (rollouts.length === 0) return erased;
      await this.eraser.erase(rollouts);
      erased += rollouts.length;
    }
  }
}
