import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import type { Logger } from 'pino';
import { Database } from '../../platform/database/database.ts';
import { BLOB_STORE, LOGGER } from '../../platform/tokens.ts';
import { declareObjects, forgetObjects, type GarbageKey, selectDoomed } from './garbage.sql.ts';
import { mapLimit } from './map-limit.ts';

/** An object that nothing points at for so long belongs to a process that is gone. */
const ABANDONED_MS = 60 * 60_000;
const BATCH = 500;
const CONCURRENCY = 8;
const DEADLINE_MS = 60_000;

/** Deletes objects of rollouts that nothing points at. Every key was written down before, so that nothing is forgotten. */
@Injectable()
export class ObjectGarbage {
  constructor(
    private readonly database: Database,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /**
   * Deletes objects that the caller wrote and nothing points at; an object store that is away leaves them to the next sweep. They are
   * written down once more: a seal that was quicker, or an erasure, may have deleted and forgotten them before they were there.
   */
  async discard(objects: readonly GarbageKey[]): Promise<void> {
    if (objects.length === 0) return;
    await declareObjects(this.database.pool, objects, true);
    await this.deleteDoomed(objects.map(({ blob_key }) => blob_key));
  }

  /** Deletes objects that are doomed already. Answers how many it could. */
  async deleteDoomed(keys: readonly string[]): Promise<number> {
    const gone: string[] = [];
    await mapLimit(keys, CONCURRENCY, async (key) => {
      try {
        const signal = AbortSignal.timeout(DEADLINE_MS);
        await (key.endsWith('/') ? this.blobs.deletePrefix(key, signal) : this.blobs.delete(key, signal));
        gone.push(key);
      } catch (error) {
        this.logger.debug({ err: error, key }, 'an object was not deleted; it will be');
      }
    });
    if (gone.length > 0) await forgetObjects(this.database.pool, gone);
    return gone.length;
  }

  /** All that is doomed or abandoned. Ends early when the object store refuses a whole batch. */
  async sweep(signal?: AbortSignal, abandonedMs = ABANDONED_MS): Promise<number> {
    for (let swept = 0; ;) {
      const keys = signal?.aborted ? [] : await selectDoomed(this.database.pool, abandonedMs, BATCH);
      const gone = await this.deleteDoomed(keys);
      swept += gone;
      if (keys.length < BATCH || gone === 0) return swept;
    }
  }
}
