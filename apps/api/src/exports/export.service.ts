import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { BlobError, type BlobStore } from '@palestra/blobs';
import { filtersByDifficulty, rowFormatOf, taskFile, type TaskFailure, type TaskFilter } from '@palestra/exports';
import { isUuid, newUuid } from '@palestra/kit';
import { type CreateTaskExport, PalestraError, type TaskExportView, type TaskFileFormat } from '@palestra/protocol';
import type { Caller, EnvironmentDirectory } from '@palestra/session';
import { ENVIRONMENT_DIRECTORY } from '../environments/directory.token.ts';
import { Database } from '../platform/database/database.ts';
import { TenantConcurrency } from '../platform/tenant-concurrency.ts';
import { BLOB_STORE } from '../platform/tokens.ts';
import { blobBody, type RawBody } from '../rollouts/raw-body.ts';
import { backendTaskSource } from './backend-task-source.ts';
import { LOST_AFTER_MS, presentExport } from './export.presenter.ts';

/** Exports of this process at the same time, sessions of each, and the deadline of one. */
const LIMITS = { owner: 2, all: 16 };
const CONCURRENCY = 32;
const DEADLINE_MS = 60 * 60_000;
const SAVE_EVERY_MS = Math.min(1_000, LOST_AFTER_MS / 10);
/** Failures that are stored with their reasons; all are counted. */
const MAX_KEPT_FAILURES = 100;
const URL_LIFETIME_S = 3_600;

const CONTENT_TYPES: Record<TaskFileFormat, string> = { parquet: 'application/vnd.apache.parquet', jsonl: 'application/x-ndjson' };

/** An export ends early; the message is its `error`. */
class ExportEnded extends Error {}

interface Running {
  done: Promise<void>;
  /** Ends it. After a cancellation there is no row to store the reason in. */
  abort: AbortController;
}

interface Progress {
  total: number | null;
  written: number;
  failed: number;
  failures: TaskFailure[];
}

/** Exports of tasks, written in the background into the object store. */
@Injectable()
export class ExportService implements OnApplicationShutdown {
  readonly #running = new Map<string, Running>();
  readonly #limits = new TenantConcurrency('exports of tasks', LIMITS);

  constructor(
    private readonly database: Database,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(ENVIRONMENT_DIRECTORY) private readonly directory: EnvironmentDirectory,
  ) {}

  async create(caller: Caller, request: CreateTaskExport): Promise<TaskExportView> {
    // Checks access now, so that the request fails instead of the background work.
    const named = [...request.environments, ...request.exclude.map(({ environment }) => environment)];
    for (const environment of named) await this.directory.resolve(environment, caller);
    if (filtersByDifficulty(filterOf(request)) && !caller.scopes.includes('rollouts')) {
      throw new PalestraError('scope_missing', { detail: 'A filter by rewards needs an API key with the scope "rollouts".' });
    }
    const release = this.#limits.acquire(caller.orgId);
    try {
      const { environments, split, format, prompt_format: promptFormat } = request;
      const row = await this.database.prisma.taskExport.create({
        data: { orgId: caller.orgId, state: 'running', environments, split, format, promptFormat },
      });
      const abort = new AbortController();
      const done = this.#run(caller, row.id, request, abort).finally(() => {
        this.#running.delete(row.id);
        release();
      });
      this.#running.set(row.id, { done, abort });
      return presentExport(row, null);
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * Cancels a running export and erases its file. False when the organisation has no export with that id. Another process that writes it
   * notices the missing row within a second.
   */
  async delete(caller: Caller, id: string): Promise<boolean> {
    const row = await this.#row(caller, id);
    if (row === null) return false;
    await this.database.prisma.taskExport.deleteMany({ where: { id: row.id, orgId: caller.orgId } });
    this.#running.get(row.id)?.abort.abort(new ExportEnded('it was cancelled'));
    await this.blobs.deletePrefix(prefixOf(caller, row.id));
    return true;
  }

  /** null when the organisation has no export with that id. */
  async find(caller: Caller, id: string): Promise<TaskExportView | null> {
    const row = await this.#row(caller, id);
    if (row === null) return null;
    if (row.blobKey === null) return presentExport(row, null);
    return presentExport(
      row,
      await this.blobs.presignGet(row.blobKey, { expiresInSeconds: URL_LIFETIME_S, fileName: `tasks.${row.format}` }),
    );
  }

  /** The file of a finished export. */
  async file(caller: Caller, id: string): Promise<RawBody> {
    const row = await this.#row(caller, id);
    if (row === null) throw new PalestraError('export_not_found');
    if (row.blobKey === null) throw new PalestraError('file_not_found', { detail: `This export has no file: it is ${row.state}.` });
    const body = await blobBody(this.blobs, row.blobKey, () => new PalestraError('file_not_found'));
    return { ...body, fileName: `tasks.${row.format}` };
  }

  async onApplicationShutdown(): Promise<void> {
    const running = [...this.#running.values()];
    for (const { abort } of running) abort.abort(new ExportEnded('the server was stopped'));
    await Promise.allSettled(running.map(({ done }) => done));
  }

  async #row(caller: Caller, id: string) {
    return isUuid(id) ? this.database.prisma.taskExport.findFirst({ where: { id, orgId: caller.orgId } }) : null;
  }

  /** Writes the object, then the row that points to it. */
  async #run(caller: Caller, id: string, request: CreateTaskExport, abort: AbortController): Promise<void> {
    const progress: Progress = { total: null, written: 0, failed: 0, failures: [] };
    const { signal } = abort;
    const deadline = setTimeout(() => abort.abort(new ExportEnded(`it took longer than ${DEADLINE_MS / 60_000} min`)), DEADLINE_MS);
    const saveProgress = () =>
      this.#save(id, counts(progress)).then(
        (exists) => exists || abort.abort(new ExportEnded('it was cancelled')),
        () => {},
      );
    const saver = setInterval(() => void saveProgress(), SAVE_EVERY_MS);
    const key = `${prefixOf(caller, id)}${newUuid()}.${request.format}`;
    try {
      const file = taskFile({
        source: backendTaskSource(this.directory, this.database.pool, caller),
        environments: request.environments,
        split: request.split,
        format: rowFormatOf(request.row_format, request.prompt_format),
        file: request.format,
        filter: filterOf(request),
        concurrency: CONCURRENCY,
        signal,
        onTotal: (total) => (progress.total = total),
        onRow: () => (progress.written += 1),
        onFailure: (failure) => {
          progress.failed += 1;
          if (progress.failures.length < MAX_KEPT_FAILURES) progress.failures.push(failure);
        },
      });
      const { size } = await this.blobs.put(key, file, { contentType: CONTENT_TYPES[request.format] }, signal);
      const done = { ...counts(progress), state: 'complete', blobKey: key, size: BigInt(size), finishedAt: new Date() };
      // Another process cancelled the export, so no row points to the file.
      if (!(await this.#save(id, done))) await this.blobs.delete(key);
    } catch (error) {
      const reason = signal.aborted ? (signal.reason as Error).message : describe(error);
      // If this cannot be stored either, the row becomes old and is shown as failed.
      await this.#save(id, { ...counts(progress), state: 'failed', error: reason, finishedAt: new Date() }).catch(() => {});
    } finally {
      clearTimeout(deadline);
      clearInterval(saver);
    }
  }

  /** False when the export was cancelled. */
  async #save(id: string, data: Parameters<Database['prisma']['taskExport']['updateMany']>[0]['data']): Promise<boolean> {
    const { count } = await this.database.prisma.taskExport.updateMany({ where: { id, state: 'running' }, data });
    return count === 1;
  }
}

const prefixOf = (caller: Caller, id: string): string => `exports/${caller.orgId}/${id}-`;

const filterOf = (request: CreateTaskExport): TaskFilter => ({
  minReward: request.min_reward,
  maxReward: request.max_reward,
  minRollouts: request.min_rollouts,
  exclude: request.exclude,
  excludeKeys: request.exclude_keys,
  shuffleSeed: request.shuffle_seed,
  maxTasks: request.max_tasks,
});

function counts({ total, written, failed, failures }: Progress) {
  return { total, written, failed, failures: failures.map((failure) => ({ ...failure })) };
}

function describe(error: unknown): string {
  if (error instanceof BlobError) return `the file could not be stored: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
