import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { BlobError, type BlobStore } from '@palestra/blobs';
import { CONTENT_TYPES, FORMATS, noFigures, ShardedRows, shardName } from '@palestra/exports';
import { newUuid } from '@palestra/kit';
import type pg from 'pg';
import type { Logger } from 'pino';
import { isDatabaseUnavailable } from '../platform/database/database-errors.ts';
import { Database } from '../platform/database/database.ts';
import { openPool } from '../platform/database/pool.ts';
import { BLOB_STORE, LOGGER } from '../platform/tokens.ts';
import { DeriveService } from '../store/derive/derive.service.ts';
import { rolloutQuery } from '../rollouts/rollout-query.ts';
import { exportPrefix } from '../store/storage/export-prefix.ts';
import { LOST_AFTER_MS } from './export.presenter.ts';
import { exportDocuments } from './rollout-export.documents.ts';
import { shardWriter } from './rollout-export.files.ts';
import { ExportMessages } from './rollout-export.messages.ts';
import { CONDITION_PARAMETER, countMatches } from './rollout-export.rows.sql.ts';
import { type ExportCursor, ExportSource } from './rollout-export.source.ts';
import { claimExport, type ExportFile, type ExportProgress, type ExportRow, othersWait, saveExport } from './rollout-export.sql.ts';

/** Of all exports of this process; nobody else shares them. */
const CONNECTIONS = 4;
/** A page of a hard query may take as long; lists of people give up much sooner. */
const STATEMENT_MS = 5 * 60_000;
const HEARTBEAT_MS = LOST_AFTER_MS / 10;
/** Failures in a row, without a finished file between them, at growing distances: about a day. */
const MAX_ATTEMPTS = 1_440;
const MAX_BACKOFF_MS = 60_000;
/** Before the first file: rollouts that were acknowledged are waited for, but not those of a trainer that never pauses. */
const SETTLE_MS = 60_000;

/** After so long an export makes room for another organisation's, and goes on after its last finished file when it is its turn again. */
const TURN_MS = 2 * 60_000;
/** From its creation. */
const DEADLINE_MS = 24 * 3_600_000;

const TOO_LATE = `it took longer than ${DEADLINE_MS / 3_600_000} h`;

/** It is not ours any more: cancelled, or taken over. */
class LeaseLost extends Error {}
class TooLate extends Error {}

/**
 * Writes exports that wait, wherever they were left: after each file its key, the place of the last row and the figures so far are
 * stored in one statement, so that a crash costs at most one file. Any replica may go on with any export.
 */
@Injectable()
export class RolloutExportRunner implements OnApplicationShutdown {
  readonly #pool: pg.Pool;

  constructor(
    private readonly database: Database,
    private readonly messages: ExportMessages,
    private readonly derive: DeriveService,
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

  /** Writes one export to its end, or until `stop`; false when none waits. */
  async runOne(stop: AbortSignal): Promise<boolean> {
    const lease = newUuid();
    const row = await claimExport(this.database.pool, lease, LOST_AFTER_MS);
    if (!row) return false;
    const progress = { ...startOf(row), lease };
    const lost = new AbortController();
    const late = setTimeout(() => lost.abort(new TooLate()), Math.max(0, row.created_at.getTime() + DEADLINE_MS - Date.now()));
    const beat = setInterval(() => {
      saveExport(this.database.pool, row.id, lease).then(
        (ours) => ours || lost.abort(new LeaseLost()),
        () => {},
      );
    }, HEARTBEAT_MS);
    try {
      if (await this.#write(row, progress, AbortSignal.any([lost.signal, stop]))) await this.#yield(row, progress);
    } catch (error) {
      if (lost.signal.reason instanceof TooLate) await this.#failed(row, progress, new Error(TOO_LATE), false);
      else if (!(error instanceof LeaseLost) && !lost.signal.aborted) await this.#failed(row, progress, error, stop.aborted);
    } finally {
      clearTimeout(late);
      clearInterval(beat);
    }
    return true;
  }

  /** True when it stopped after a file because others wait. */
  async #write(row: ExportRow, progress: ExportProgress, signal: AbortSignal): Promise<boolean> {
    const turnEnds = Date.now() + TURN_MS;
    const { format, shard_rows: rows, shard_bytes: bytes } = row.request;
    if (row.files.length === 0 && progress.position === null) await this.#begin(row, progress);
    const shards = new ShardedRows<unknown, ExportCursor>(this.#rows(row, signal), progress.position);
    try {
      // A query without rollouts is answered by one empty file, which has the columns.
      while (row.files.length === 0 || !(await shards.isDone())) {
        const counted = { rows: 0, bytes: 0 };
        const writer = shardWriter(format, progress, lineageOf(row), counted);
        const { extension } = FORMATS[format];
        const key = `${exportPrefix(row.org_id, row.id)}part-${String(row.files.length).padStart(5, '0')}-${newUuid()}.${extension}`;
        const { size } = await this.blobs.put(
          key,
          writer(shards.shard({ rows, bytes }, () => counted.bytes)),
          { contentType: CONTENT_TYPES[extension] },
          signal,
        );
        progress.position = shards.cursor;
        progress.attempts = 0;
        await this.#save(row, progress, { key, name: null, rows: counted.rows, size });
        if (Date.now() > turnEnds && (await othersWait(this.database.pool, row.org_id, LOST_AFTER_MS))) return true;
      }
    } finally {
      await shards.close().catch(() => {});
    }
    await this.#finish(row, progress, signal);
    return false;
  }

  /** Back to the end of the queue. */
  async #yield(row: ExportRow, progress: ExportProgress): Promise<void> {
    await saveExport(this.database.pool, row.id, progress.lease, { state: 'pending', cursor: progress });
  }

  /** Waits for what was acknowledged before, and counts. */
  async #begin(row: ExportRow, progress: ExportProgress): Promise<void> {
    const deadline = Date.now() + SETTLE_MS;
    while (Date.now() < deadline && (await this.derive.settle(row.request.run_seqs)));
    const { input } = FORMATS[row.request.format];
    const query = rolloutQuery(row.request.query, row.request.run_seqs, CONDITION_PARAMETER);
    if (input === 'pairs' || input === 'tasks' || query.compiled.postFilter) return;
    const total = await countMatches(this.#pool, row.request.run_seqs, row.as_of_seq, query.where);
    if (!(await saveExport(this.database.pool, row.id, progress.lease, { total: String(total) }))) throw new LeaseLost();
  }

  #rows(row: ExportRow, signal: AbortSignal): AsyncIterable<{ row: unknown; cursor: ExportCursor }> {
    const { request } = row;
    const query = rolloutQuery(request.query, request.run_seqs, CONDITION_PARAMETER);
    const scope = {
      org: { id: row.org_id, name: request.org_name },
      runSeqs: request.run_seqs,
      asOf: row.as_of_seq,
      where: query.where,
      postFilter: query.compiled.postFilter,
      redact: request.redact,
      lens: request.lens,
    };
    const source = new ExportSource(this.#pool, this.messages, scope, signal);
    const position = startOf(row).position;
    const readers = {
      rollouts: () => source.rollouts(position),
      narrow: () => source.narrow(position),
      pairs: () => source.pairs(position),
      tasks: () => source.tasks(position),
    };
    return readers[FORMATS[request.format].input]();
  }

  /** Object first, then the row that points to it; of a file that nobody points to nothing is left. */
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

  /** A store or a database that is away comes back; anything else is said. What is stored so far stays. */
  async #failed(row: ExportRow, progress: ExportProgress, error: unknown, stopped: boolean): Promise<void> {
    const passing = stopped || isDatabaseUnavailable(error) || (error instanceof BlobError && ['unavailable', 'full'].includes(error.kind));
    // What the row says is where the next one starts: figures of a file that was not finished are not in it.
    const stored = startOf(row);
    const attempts = stopped ? stored.attempts : progress.attempts + 1;
    const again = passing && attempts < MAX_ATTEMPTS;
    const waitMs = stopped ? 0 : Math.min(MAX_BACKOFF_MS, 1_000 * 2 ** attempts);
    if (!again) this.logger.warn({ err: error, export: row.id }, 'an export failed');
    const cursor = { ...stored, lease: progress.lease, attempts, not_before: new Date(Date.now() + waitMs).toISOString() };
    const change = again ? { state: 'pending', cursor } : { state: 'failed', cursor, error: describe(error) };
    // When even this cannot be stored, somebody finds it later by its age.
    await saveExport(this.database.pool, row.id, progress.lease, change).catch(() => {});
  }
}

/** What a row says of how far it is. */
function startOf({ cursor }: ExportRow): ExportProgress {
  const start = { lease: '', position: null, figures: noFigures(), skipped: 0, attempts: 0, not_before: null };
  return structuredClone({ ...start, ...cursor });
}

/** What Parquet files say in their footers. */
function lineageOf({ id, request, as_of_seq }: ExportRow): Record<string, string> {
  const { canonical_query: query, lens, run_name: run } = request;
  return { 'palestra.export': id, 'palestra.query': query, 'palestra.lens': lens, 'palestra.run': run ?? '', 'palestra.as_of': as_of_seq };
}

function describe(error: unknown): string {
  if (error instanceof BlobError) return `a file could not be stored: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
