import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { BlobError, type BlobStore } from '@palestra/blobs';
import { CONTENT_TYPES, FORMATS, noFigures, ShardedRows, shardName } from '@palestra/exports';
import { newUuid } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type pg from 'pg';
import type { Logger } from 'pino';
import { isDatabaseUnavailable } from '../platform/database/database-errors.ts';
import { Database } from '../platform/database/database.ts';
import { openPool } from '../platform/database/pool.ts';
import { BLOB_STORE, LOGGER } from '../platform/tokens.ts';
import { UntrustedWork } from '../platform/untrusted-work/untrusted-work.ts';
import { DeriveService } from '../store/derive/derive.service.ts';
import { rolloutQuery } from '../rollouts/rollout-query.ts';
import { exportPrefix } from '../store/storage/export-prefix.ts';
import { LOST_AFTER_MS } from './export.presenter.ts';
import { exportDocuments } from './rollout-export.documents.ts';
import { shardWriter } from './rollout-export.files.ts';
import { ExportMessages } from './rollout-export.messages.ts';
import { CONDITION_PARAMETER, countMatches } from './rollout-export.rows.sql.ts';
import { type ExportCursor, type ExportSelection, ExportSource } from './rollout-export.source.ts';
import { claimExport, type ExportFile, type ExportProgress, type ExportRow, othersWait, saveExport } from './rollout-export.sql.ts';

/** Connections for all exports of this process, not shared with other work. */
const CONNECTIONS = 4;
/** Statement timeout: a page of an expensive query may take this long, unlike a list. */
const STATEMENT_MS = 5 * 60_000;
const HEARTBEAT_MS = LOST_AFTER_MS / 10;
/** Failures in a row without a finished file between them; with growing delays about a day. */
const MAX_ATTEMPTS = 1_440;
const MAX_BACKOFF_MS = 60_000;
/** Maximum wait before the first file until acknowledged rollouts are derived. A trainer may never pause. */
const SETTLE_MS = 60_000;

/** Ids of rollouts that an export names as too large. */
const MAX_TOO_LARGE = 1_000;
/** After this time an export yields to one of another organisation. It continues after its last finished file. */
const TURN_MS = 2 * 60_000;
/** Deadline from its creation. */
const DEADLINE_MS = 24 * 3_600_000;

const TOO_LATE = `it took longer than ${DEADLINE_MS / 3_600_000} h`;

/** This process no longer owns the export: it was cancelled, or another process took it over. */
class LeaseLost extends Error {}
class TooLate extends Error {}

/**
 * Writes waiting exports. After each file one statement stores its key, the position of the last row and the figures, so that a crash loses
 * at most one file. Any replica can continue any export.
 */
@Injectable()
export class RolloutExportRunner implements OnApplicationShutdown {
  readonly #pool: pg.Pool;

  constructor(
    private readonly database: Database,
    private readonly messages: ExportMessages,
    private readonly derive: DeriveService,
    private readonly work: UntrustedWork,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#pool = openPool({
      connectionString: database.connectionString,
      max: CONNECTIONS,
      connectionTimeoutMillis: 10_000,
      statement_timeout: STATEMENT_MS,
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#pool.end();
  }

  /** Writes one export to its end or until `stop`; false when none waits. */
  async runOne(stop: AbortSignal): Promise<boolean> {
    const lease = newUuid();
    const row = await claimExport(this.database.pool, lease, LOST_AFTER_MS);
    if (!row) return false;
    const progress = { ...storedProgress(row), lease };
    const lost = new AbortController();
    const late = setTimeout(() => lost.abort(new TooLate()), Math.max(0, row.created_at.getTime() + DEADLINE_MS - Date.now()));
    const heartbeat = setInterval(() => {
      saveExport(this.database.pool, row.id, lease).then(
        (isOwned) => isOwned || lost.abort(new LeaseLost()),
        () => {},
      );
    }, HEARTBEAT_MS);
    try {
      if (await this.#write(row, progress, AbortSignal.any([lost.signal, stop]))) await this.#yield(row, progress);
    } catch (error) {
      if (lost.signal.reason instanceof TooLate) await this.#fail(row, progress, new Error(TOO_LATE), false);
      else if (!(error instanceof LeaseLost) && !lost.signal.aborted) await this.#fail(row, progress, error, stop.aborted);
    } finally {
      clearTimeout(late);
      clearInterval(heartbeat);
    }
    return true;
  }

  /** True when it stopped after a file because another organisation waits. */
  async #write(row: ExportRow, progress: ExportProgress, signal: AbortSignal): Promise<boolean> {
    const turnEnds = Date.now() + TURN_MS;
    const { format, shard_rows: rows, shard_bytes: bytes } = row.request;
    if (row.files.length === 0 && progress.position === null) await this.#begin(row, progress);
    const shards = new ShardedRows<unknown, ExportCursor>(await this.#rows(row, progress, signal), progress.position);
    try {
      // A query without rollouts gives one empty file, which has the columns.
      while (row.files.length === 0 || !(await shards.isDone())) {
        const counts = { rows: 0, bytes: 0 };
        const writer = shardWriter(format, progress, lineageOf(row), counts);
        const { extension } = FORMATS[format];
        const key = `${exportPrefix(row.org_id, row.id)}part-${String(row.files.length).padStart(5, '0')}-${newUuid()}.${extension}`;
        const { size } = await this.blobs.put(
          key,
          writer(shards.shard({ rows, bytes }, () => counts.bytes)),
          { contentType: CONTENT_TYPES[extension] },
          signal,
        );
        progress.position = shards.cursor;
        progress.attempts = 0;
        await this.#save(row, progress, { key, name: null, rows: counts.rows, size });
        if (Date.now() > turnEnds && (await othersWait(this.database.pool, row.org_id, LOST_AFTER_MS))) return true;
      }
    } finally {
      await shards.close().catch(() => {});
    }
    await this.#finish(row, progress, signal);
    return false;
  }

  /** Returns the export to the end of the queue. */
  async #yield(row: ExportRow, progress: ExportProgress): Promise<void> {
    await saveExport(this.database.pool, row.id, progress.lease, { state: 'pending', cursor: progress });
  }

  /** Waits until acknowledged rollouts are derived, then counts. */
  async #begin(row: ExportRow, progress: ExportProgress): Promise<void> {
    const deadline = Date.now() + SETTLE_MS;
    while (Date.now() < deadline && (await this.derive.settle(row.request.run_seqs)));
    const { input } = FORMATS[row.request.format];
    const { where, postFilter } = await this.#filter(row.request);
    if (input === 'pairs' || input === 'labels' || input === 'tasks' || postFilter) return;
    const total = await countMatches(this.#pool, row.request.run_seqs, row.as_of_seq, where);
    if (!(await saveExport(this.database.pool, row.id, progress.lease, { total: String(total) }))) throw new LeaseLost();
  }

  async #rows(
    row: ExportRow,
    progress: ExportProgress,
    signal: AbortSignal,
  ): Promise<AsyncIterable<{ row: unknown; cursor: ExportCursor }>> {
    const { request } = row;
    const selection = {
      ...(await this.#filter(request)),
      org: { id: row.org_id, name: request.org_name },
      runSeqs: request.run_seqs,
      asOf: row.as_of_seq,
      redact: request.redact,
      lens: request.lens,
      queue: request.review ?? null,
    };
    const onTooLarge = (id: string) => {
      if (!progress.too_large.includes(id) && progress.too_large.length < MAX_TOO_LARGE) progress.too_large.push(id);
    };
    const source = new ExportSource(this.#pool, this.messages, this.work, selection, signal, onTooLarge);
    const position = storedProgress(row).position;
    const readers = {
      rollouts: () => source.rollouts(position),
      narrow: () => source.narrow(position),
      pairs: () => source.pairs(position),
      labels: () => source.labels(position),
      tasks: () => source.tasks(position),
    };
    return readers[FORMATS[request.format].input]();
  }

  /** The condition of the query and of the chosen rollouts. */
  async #filter({ query, run_seqs: runSeqs, rollouts }: ExportRow['request']): Promise<Pick<ExportSelection, 'where' | 'postFilter'>> {
    const { where, compiled } = await rolloutQuery(this.#pool, query, runSeqs, CONDITION_PARAMETER);
    const { postFilter } = compiled;
    if (rollouts === undefined) return { where, postFilter };
    const chosen = `r.id = ANY($${CONDITION_PARAMETER + where.values.length}::uuid[])`;
    return { where: { sql: `(${where.sql}) AND ${chosen}`, values: [...where.values, rollouts] }, postFilter };
  }

  /** Writes the row after its object. Deletes the object if the row cannot point to it. */
  async #save(row: ExportRow, progress: ExportProgress, file: ExportFile): Promise<void> {
    const files = [...row.files, file];
    const written = files.reduce((sum, each) => sum + each.rows, 0);
    const bytes = files.reduce((sum, each) => sum + each.size, 0);
    const change = { files, cursor: progress, written: String(written), bytes: String(bytes) };
    if (!(await saveExport(this.database.pool, row.id, progress.lease, change))) {
      await this.blobs.delete(file.key).catch(() => {});
      throw new LeaseLost();
    }
    row.files = files;
    row.cursor = structuredClone(progress);
  }

  async #finish(row: ExportRow, progress: ExportProgress, signal: AbortSignal): Promise<void> {
    const { extension } = FORMATS[row.request.format];
    const files = row.files.map((file, at) => ({ ...file, name: shardName(at, row.files.length, extension) }));
    for (const { name, body, contentType } of exportDocuments(row, progress, files)) {
      const key = `${exportPrefix(row.org_id, row.id)}${name}`;
      await this.blobs.put(key, Buffer.from(body), { contentType }, signal);
      files.push({ key, name, rows: 0, size: Buffer.byteLength(body) });
    }
    const bytes = String(files.reduce((sum, { size }) => sum + size, 0));
    if (
      !(await saveExport(this.database.pool, row.id, progress.lease, { state: 'complete', files, cursor: progress, bytes, error: null }))
    ) {
      throw new LeaseLost();
    }
  }

  /** Retries when the store or the database was unavailable; other errors fail the export. Finished files stay. */
  async #fail(row: ExportRow, progress: ExportProgress, error: unknown, stopped: boolean): Promise<void> {
    const isTemporary =
      stopped ||
      isDatabaseUnavailable(error) ||
      (error instanceof BlobError && ['unavailable', 'full'].includes(error.kind)) ||
      (error instanceof PalestraError && ['capacity_exhausted', 'shutting_down'].includes(error.code));
    // The next attempt starts from the row, which has no figures of the unfinished file.
    const stored = storedProgress(row);
    const attempts = stopped ? stored.attempts : progress.attempts + 1;
    const retries = isTemporary && attempts < MAX_ATTEMPTS;
    const waitMs = stopped ? 0 : Math.min(MAX_BACKOFF_MS, 1_000 * 2 ** attempts);
    if (!retries) this.logger.warn({ err: error, export: row.id }, 'an export failed');
    const cursor = { ...stored, lease: progress.lease, attempts, not_before: new Date(Date.now() + waitMs).toISOString() };
    const change = retries ? { state: 'pending', cursor } : { state: 'failed', cursor, error: describe(error) };
    // If this cannot be stored either, the export is found later by its age.
    await saveExport(this.database.pool, row.id, progress.lease, change).catch(() => {});
  }
}

/** The progress in a row. */
function storedProgress({ cursor }: ExportRow): ExportProgress {
  const start = { lease: '', position: null, figures: noFigures(), skipped: 0, too_large: [], attempts: 0, not_before: null };
  return structuredClone({ ...start, ...cursor });
}

/** Metadata in the footers of Parquet files. */
function lineageOf({ id, request, as_of_seq }: ExportRow): Record<string, string> {
  const { canonical_query: query, lens, run_name: run, review } = request;
  return {
    'palestra.export': id,
    'palestra.query': query,
    'palestra.lens': lens,
    'palestra.run': run ?? '',
    'palestra.as_of': as_of_seq,
    ...(review && { 'palestra.queue': review.queue_id }),
  };
}

function describe(error: unknown): string {
  if (error instanceof BlobError) return `a file could not be stored: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
