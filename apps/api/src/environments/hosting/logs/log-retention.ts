import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { BlobError, type BlobStore } from '@palestra/blobs';
import { JobQueue } from '../../../jobs/job-queue.service.ts';
import { Database } from '../../../platform/database/database.ts';
import { BLOB_STORE } from '../../../platform/tokens.ts';
import type { LogRow } from './hosting-log.sql.ts';
import { LogArchive } from './log-archive.ts';
import {
  deleteLinesUpTo,
  deleteLinesOf,
  selectArchiveLimit,
  selectEndedBuilds,
  selectEnvironmentsWithLogs,
  selectRuntimeLines,
  selectWholeLog,
} from './log-retention.sql.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Lines of instances stay in the database this long, and at most so many of one environment. Builds stay for the same time. */
const DATABASE_DAYS = 7;
const DATABASE_LINES = 100_000;
/** For this time after its end the log of a build is in the database only. */
export const BUILD_DATABASE_MS = (DATABASE_DAYS - 1) * DAY_MS;
/** Then they are objects, until this age. */
const ARCHIVE_DAYS = 90;
/** Of one object. */
const CHUNK_LINES = 2_000;
/** Objects of one environment. */
const MAX_CHUNKS = 5_000;
const BATCH = 500;

export interface LogRetentionLimits {
  databaseDays: number;
  databaseLines: number;
  archiveDays: number;
}

/** Moves old log lines to objects, and deletes old objects. */
@Injectable()
export class LogRetention implements OnModuleInit {
  readonly #archive: LogArchive;

  constructor(
    private readonly jobs: JobQueue,
    private readonly database: Database,
    @Inject(BLOB_STORE) blobs: BlobStore,
  ) {
    this.#archive = new LogArchive(blobs);
  }

  onModuleInit(): void {
    const limits = { databaseDays: DATABASE_DAYS, databaseLines: DATABASE_LINES, archiveDays: ARCHIVE_DAYS };
    this.jobs.handle('hosting-logs', { everyMs: HOUR_MS, deadlineMs: HOUR_MS, lane: 'bulk' }, (_payload, signal) =>
      this.sweep(limits, signal),
    );
  }

  /** An environment whose log cannot be moved keeps no other. Rejects with the first error, at once while the object store is away. */
  async sweep(limits: LogRetentionLimits, signal: AbortSignal): Promise<void> {
    const failures: unknown[] = [];
    for (let after = ''; !signal.aborted;) {
      const ids = await selectEnvironmentsWithLogs(this.database.pool, after, BATCH);
      for (const id of ids) {
        if (signal.aborted) return;
        try {
          await this.#archiveRuntime(id, limits);
          await this.#archiveBuilds(id, limits);
        } catch (error) {
          if (error instanceof BlobError && error.kind === 'unavailable') throw error;
          failures.push(error);
        }
      }
      if (ids.length < BATCH) break;
      after = ids.at(-1)!;
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Lines that an earlier run stored as objects are deleted first, and lines that this run stores stay until the next one: a reader that listed
   * the objects before still finds them in the database.
   */
  async #archiveRuntime(environmentId: string, { databaseDays, databaseLines, archiveDays }: LogRetentionLimits): Promise<void> {
    const { pool } = this.database;
    const chunks = await this.#archive.chunks(environmentId);
    let last = chunks.at(-1)?.last ?? 0;
    await deleteLinesUpTo(pool, environmentId, last);
    const limit = await selectArchiveLimit(pool, environmentId, databaseDays, databaseLines);
    while (last < limit) {
      const rows = await selectRuntimeLines(pool, environmentId, last, limit, CHUNK_LINES);
      if (rows.length === 0) break;
      await this.#archive.storeChunk(environmentId, rows);
      last = rows.at(-1)!.seq;
    }
    const oldest = Date.now() - archiveDays * DAY_MS;
    const excess = chunks.length - MAX_CHUNKS;
    for (const [at, chunk] of chunks.entries()) if (chunk.lastAt < oldest || at < excess) await this.#archive.deleteChunk(chunk);
  }

  async #archiveBuilds(environmentId: string, { databaseDays, archiveDays }: LogRetentionLimits): Promise<void> {
    const { pool } = this.database;
    for (const { id, isExpired } of await selectEndedBuilds(pool, environmentId, databaseDays, archiveDays)) {
      if (!isExpired && !(await this.#archive.hasBuild(environmentId, id))) {
        const rows: LogRow[] = await selectWholeLog(pool, id);
        await this.#archive.storeBuild(environmentId, id, rows);
      } else {
        if (isExpired) await this.#archive.deleteBuild(environmentId, id);
        await deleteLinesOf(pool, id);
      }
    }
  }
}
