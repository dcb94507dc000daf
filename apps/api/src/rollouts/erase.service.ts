import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import { Database } from '../platform/database.ts';
import { BLOB_STORE } from '../platform/tokens.ts';
import { type ErasableRollout, eraseEmptyRun, eraseRollouts, hideRun, selectErasable, selectErasableOfRun } from './erase.sql.ts';
import { rolloutPrefix } from './message-objects.service.ts';

const BATCH = 500;
const OBJECT_CONCURRENCY = 8;
const DEADLINE_MS = 60_000;

/** Erasing for good: rows of every table of the store, and the objects. */
@Injectable()
export class EraseService {
  constructor(
    private readonly database: Database,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
  ) {}

  /** False when the organisation has none of that id. */
  async eraseRollout(orgId: string, id: string): Promise<boolean> {
    const rollout = await selectErasable(this.database.pool, orgId, id);
    if (!rollout) return false;
    await this.#erase(orgId, [rollout]);
    return true;
  }

  /** Hides the run at once and erases what is in it; what a crash leaves of that is erased later. False when there is no such run. */
  async eraseRun(orgId: string, runId: string): Promise<boolean> {
    const runSeq = await hideRun(this.database.pool, orgId, runId);
    if (runSeq === null) return false;
    await this.eraseHidden(orgId, runSeq);
    return true;
  }

  async eraseHidden(orgId: string, runSeq: number): Promise<void> {
    for (;;) {
      const rollouts = await selectErasableOfRun(this.database.pool, runSeq, BATCH);
      if (rollouts.length === 0) break;
      await this.#erase(orgId, rollouts);
    }
    await eraseEmptyRun(this.database.pool, runSeq);
  }

  /** Rows first: an object without rows is found by nobody, a row without its object would be a lie. */
  async #erase(orgId: string, rollouts: readonly ErasableRollout[]): Promise<void> {
    const client = await this.database.pool.connect();
    try {
      await client.query('BEGIN');
      await eraseRollouts(
        client,
        rollouts.map(({ seq }) => seq),
      );
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {});
      throw error;
    } finally {
      client.release();
    }
    const withObjects = rollouts.filter(({ objects }) => objects);
    for (let at = 0; at < withObjects.length; at += OBJECT_CONCURRENCY) {
      await Promise.all(
        withObjects
          .slice(at, at + OBJECT_CONCURRENCY)
          .map(({ id }) => this.blobs.deletePrefix(rolloutPrefix(orgId, id), AbortSignal.timeout(DEADLINE_MS))),
      );
    }
  }
}
