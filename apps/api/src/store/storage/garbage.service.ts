import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import type { Logger } from 'pino';
import { Database } from '../../platform/database/database.ts';
import { BLOB_STORE, LOGGER } from '../../platform/tokens.ts';
import { declareObjects, forgetObjects, type GarbageKey, selectDoomed } from './garbage.sql.ts';
import { mapLimit } from './map-limit.ts';

/** An object without a pointer for this long belongs to a process that died. */
const ABANDONED_MS = 30 * 60_000;
const BATCH = 500;
const CONCURRENCY = 8;
const DEADLINE_MS = 60_000;

/** Deletes objects of rollouts without a pointer. Every key is stored before its object, so that no object is lost. */
@Injectable()
export class ObjectGarbage {
  constructor(
    private readonly database: Database,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /**
   * Deletes objects that the caller wrote and that have no pointer. If the object store is unavailable the next sweep deletes them. Stores
   * their keys again, because a faster seal or an erasure may have deleted the keys before the objects existed.
   */
  async discard(objects: readonly GarbageKey[]): Promise<void> {
    if (objects.length === 0) return;
    await declareObjects(this.database.pool, objects, true);
    await this.deleteDoomed(objects.map(({ blob_key }) => blob_key));
  }

  /** Deletes objects that are doomed already. Returns how many it deleted. */
  async deleteDoomed(keys: readonly string[]): Promise<number> {
    const deleted: string[] = [];
    await mapLimit(keys, CONCURRENCY, async (key) => {
      try {
        const signal = AbortSignal.timeout(DEADLINE_MS);
        await (key.endsWith('/') ? this.blobs.deletePrefix(key, signal) : this.blobs.delete(key, signal));
        deleted.push(key);
      } catch (error) {
        this.logger.debug({ err: error, key }, 'an object was not deleted; the next sweep repeats it');
      }
    });
    if (deleted.length > 0) await forgetObjects(this.database.pool, deleted);
    return deleted.length;
  }

  /** Deletes all doomed and abandoned objects. Stops when the object store refuses a whole batch. */
  async sweep(signal?: AbortSignal, abandonedMs = ABANDONED_MS): Promise<number> {
    for (let swept = 0; ;) {
      const keys = signal?.aborted ? [] : await selectDoomed(this.database.pool, abandonedMs, BATCH);
      const deleted = await this.deleteDoomed(keys);
      swept += deleted;
      if (keys.length < BATCH || deleted === 0) return swept;
    }
  }
}
