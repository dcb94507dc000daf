import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import { FORMATS } from '@palestra/exports';
import { isUuid } from '@palestra/kit';
import {
  type CreateRolloutExport,
  PalestraError,
  type ReviewMode,
  type RolloutExportFormat,
  type RolloutExportView,
} from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { BLOB_STORE } from '../platform/tokens.ts';
import { blobBody, type RawBody } from '../rollouts/raw-body.ts';
import { canonicalQuery } from '../rollouts/rollout-query.ts';
import { type QueueRow, selectQueue } from '../reviews/review-queue.sql.ts';
import { RunService } from '../runs/run.service.ts';
import { exportPrefix } from '../store/storage/export-prefix.ts';
import { declareObjects } from '../store/storage/garbage.sql.ts';
import { ExportJobs } from './export-jobs.ts';
import { presentRolloutExport } from './rollout-export.presenter.ts';
import { latestSeq } from './rollout-export.rows.sql.ts';
import {
  countActive,
  deleteExport,
  type ExportRow,
  insertExport,
  selectExport,
  selectExportedRuns,
  selectExports,
} from './rollout-export.sql.ts';

const URL_LIFETIME_S = 3_600;
/** Maximum per organisation of waiting and running exports. */
const MAX_ACTIVE = 20;
const MAX_LISTED = 200;

/** Exports of the rollouts of a query, written in the background into the object store. */
@Injectable()
export class RolloutExportService {
  constructor(
    private readonly database: Database,
    private readonly runs: RunService,
    private readonly jobs: ExportJobs,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
  ) {}

  /**
   * Throws `run_not_found`, `invalid_query`, `review_queue_not_found`, `invalid_body` for a format that the queue does not have, and
   * `capacity_exhausted` when too many exports wait.
   */
  async create(caller: Caller, { run, queue: queueId, as_of: asOf, ...asked }: CreateRolloutExport): Promise<RolloutExportView> {
    const { pool } = this.database;
    const queue = await this.#queue(caller, queueId, asked.format);
    const request = { ...asked, query: queue?.query ?? asked.query };
    const runSeq = queue ? queue.run_seq : run === undefined ? null : await this.runs.seqOf(caller, run);
    const found = await selectExportedRuns(pool, caller.orgId, runSeq);
    const runSeqs = found.map(({ seq }) => seq);
    const text = canonicalQuery(request.query);
    if ((await countActive(pool, caller.orgId)) >= MAX_ACTIVE) {
      throw new PalestraError('capacity_exhausted', {
        detail: `${MAX_ACTIVE} exports of this organisation are already waiting. Try again when one has finished.`,
        retryAfterSeconds: 10,
      });
    }
    const row = await insertExport(pool, {
      org_id: caller.orgId,
      run_seq: runSeq,
      request: {
        ...request,
        canonical_query: text,
        run_name: runSeq === null ? null : found[0]!.name,
        run_seqs: runSeqs,
        org_name: caller.orgName,
        review: queue && { queue_id: queue.id, queue: queue.name, queue_query: queue.query, queue_seed: queue.seed },
      },
      as_of_seq: await latestSeq(pool, asOf ?? null),
      author: caller.userId,
    });
    await this.jobs.wake();
    return presentRolloutExport(row, []);
  }

  async list(caller: Caller): Promise<{ exports: RolloutExportView[] }> {
    const rows = await selectExports(this.database.pool, caller.orgId, MAX_LISTED);
    return { exports: await Promise.all(rows.map((row) => this.#view(row))) };
  }

  /** null when the organisation has no export with that id. */
  async find(caller: Caller, id: string): Promise<RolloutExportView | null> {
    const row = await this.#row(caller, id);
    return row && this.#view(row);
  }

  /** A file of a finished export, by its name. Throws `export_not_found`, `file_not_found`. */
  async file(caller: Caller, id: string, name: string): Promise<RawBody> {
    const row = await this.#row(caller, id);
    if (!row) throw new PalestraError('export_not_found');
    const file = row.files.find((each) => each.name === name);
    if (!file || row.state !== 'complete')
      throw new PalestraError('file_not_found', { detail: `This export is ${row.state} and has no such file.` });
    const body = await blobBody(this.blobs, file.key, () => new PalestraError('file_not_found'));
    return { ...body, fileName: fileNameOf(name) };
  }

  /** Cancels a running export and erases its files. Throws `export_not_found`. */
  async delete(caller: Caller, id: string): Promise<void> {
    const row = await this.#row(caller, id);
    if (!row) throw new PalestraError('export_not_found');
    const prefix = exportPrefix(caller.orgId, row.id);
    // The process that writes it notices at its next file. The declared prefix lets the garbage collection delete that file and any that
    // could not be deleted now.
    await declareObjects(this.database.pool, [{ blob_key: prefix, rollout_seq: '0' }], true);
    await deleteExport(this.database.pool, caller.orgId, row.id);
    await this.blobs.deletePrefix(prefix);
  }

  async #queue(caller: Caller, id: string | undefined, format: RolloutExportFormat): Promise<QueueRow | null> {
    const { input } = FORMATS[format];
    const refuse = (msg: string) => new PalestraError('invalid_body', { detail: [{ type: 'value_error', loc: ['body', 'queue'], msg }] });
    if (id === undefined) {
      if (input === 'labels') throw refuse('This format needs a review queue.');
      return null;
    }
    const queue = await selectQueue(this.database.pool, caller.orgId, id);
    if (!queue) throw new PalestraError('review_queue_not_found');
    if (input !== queue.mode)
      throw refuse(`A queue of ${queue.mode} has no such rows. Formats of ${queue.mode}: ${formatsOf(queue.mode)}.`);
    return queue;
  }

  async #row(caller: Caller, id: string): Promise<ExportRow | null> {
    return isUuid(id) ? selectExport(this.database.pool, caller.orgId, id) : null;
  }

  async #view(row: ExportRow): Promise<RolloutExportView> {
    if (row.state !== 'complete') return presentRolloutExport(row, []);
    const urls = row.files.map(({ key, name }) =>
      this.blobs.presignGet(key, { expiresInSeconds: URL_LIFETIME_S, fileName: fileNameOf(name!) }),
    );
    return presentRolloutExport(row, await Promise.all(urls));
  }
}

const formatsOf = (mode: ReviewMode): string =>
  Object.entries(FORMATS)
    .filter(([, { input }]) => input === mode)
    .map(([name]) => name)
    .join(', ');
const fileNameOf = (name: string): string => name.split('/').at(-1)!;
