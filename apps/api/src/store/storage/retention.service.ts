import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../../platform/database/database.ts';
import { bisectBatch, isItemFault } from '../bisect-batch.ts';
import { eachItem } from '../each-item.ts';
import { EraseService } from './erase.service.ts';
import type { ErasableRollout } from './erase.sql.ts';
import { eraseExpiredSessions } from './ledger-retention.sql.ts';
import { eraseDueTexts, eraseExpiredTexts } from './text-retention.sql.ts';
import {
  selectExpired,
  selectRetainedRuns,
  selectStrays,
  type Strays,
  updateOrganisationRetention,
  updateRunRetention,
} from './retention.sql.ts';

const BATCH = 500;

/**
 * Erases rollouts a number of days after their last event, by the setting of their run or else of their organisation. An empty run stays,
 * because an upload for it may be on its way.
 */
@Injectable()
export class RetentionService {
  constructor(
    private readonly database: Database,
    private readonly eraser: EraseService,
  ) {}

  /** `days`: from 1; null = the organisation's setting. False when the organisation has no such run. */
  setOfRun(orgId: string, runId: string, days: number | null): Promise<boolean> {
    return updateRunRetention(this.database.pool, orgId, runId, days);
  }

  /** `days`: from 1; null = never, unless a run has its own setting. */
  setOfOrganisation(orgId: string, days: number | null): Promise<void> {
    return updateOrganisationRetention(this.database.pool, orgId, days);
  }

  /** Returns how many rollouts were erased. The next sweep continues an aborted one. A run that fails stops no other. */
  async sweep(signal?: AbortSignal): Promise<number> {
    const { pool } = this.database;
    let erased = 0;
    await eachItem([null, ...(await selectRetainedRuns(pool))], signal, async (run) => {
      if (run === null) erased += await this.#eraseStrays(signal);
      else erased += await this.#eraseAll(() => selectExpired(pool, run, BATCH), signal);
    });
    return erased;
  }

  /**
   * Erases the texts of text sessions: a day after their rollout was complete, or without a rollout after the retention of the
   * organisation. Returns their number.
   */
  sweepTexts(signal?: AbortSignal): Promise<number> {
    return this.#sweepBy([eraseDueTexts, eraseExpiredTexts], signal);
  }

  /** Erases sessions and their calls after the retention of their organisation. Returns their number. */
  sweepSessions(signal?: AbortSignal): Promise<number> {
    return this.#sweepBy([eraseExpiredSessions], signal);
  }

  /** `erases`: each erases at most `limit` and returns their number. */
  async #sweepBy(erases: ((pool: pg.Pool, limit: number) => Promise<number>)[], signal?: AbortSignal): Promise<number> {
    let erased = 0;
    for (const erase of erases) {
      for (let count = BATCH; count === BATCH && !signal?.aborted; erased += count) count = await erase(this.database.pool, BATCH);
    }
    return erased;
  }

  /** Page by page, because all of the first pages may be of organisations that keep theirs for long. */
  async #eraseStrays(signal?: AbortSignal): Promise<number> {
    let erased = 0;
    const failures: unknown[] = [];
    const erase = async (rollouts: readonly ErasableRollout[]) => {
      await this.eraser.erase(rollouts);
      erased += rollouts.length;
    };
    for (let after: string | null = '0'; after !== null && !signal?.aborted;) {
      const page: Strays = await selectStrays(this.database.pool, after);
      after = page.last;
      for (let at = 0; at < page.expired.length && !signal?.aborted; at += BATCH) {
        await bisectBatch(page.expired.slice(at, at + BATCH), erase, (_rollout, error) => void failures.push(error), isItemFault);
      }
    }
    if (failures.length > 0) throw failures[0];
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
