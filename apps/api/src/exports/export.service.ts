import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { BlobError, type BlobBody, type BlobStore } from '@palestra/blobs';
import { type PromptFormat, taskFile, type TaskFailure, type TaskFileFormat, taskRows, type TaskRow } from '@palestra/exports';
import { isUuid, newUuid } from '@palestra/kit';
import { PalestraError, type TaskExportView } from '@palestra/protocol';
import type { Caller, EnvironmentDirectory } from '@palestra/session';
import { ENVIRONMENT_DIRECTORY } from '../environments/directory.token.ts';
import { Database } from '../platform/database/database.ts';
import { BLOB_STORE } from '../platform/tokens.ts';
import { backendTaskSource } from './backend-task-source.ts';
import { LOST_AFTER_MS, presentExport } from './export.presenter.ts';
import type { CreateTaskExport } from './export.schema.ts';

/** Exports written at the same time by this process, and sessions of each. */
const MAX_RUNNING = 4;
const CONCURRENCY = 32;
const TELL_EVERY_MS = Math.min(1_000, LOST_AFTER_MS / 10);
/** Failures kept with their reasons; all are counted. */
const MAX_KEPT_FAILURES = 100;
const URL_LIFETIME_S = 3_600;

const CONTENT_TYPES: Record<TaskFileFormat, string> = { parquet: 'application/vnd.apache.parquet', jsonl: 'application/x-ndjson' };

interface Progress {
  total: number | null;
  written: number;
  failed: number;
  failures: TaskFailure[];
}

/** Files of tasks, written in the background into the object store. */
@Injectable()
export class ExportService implements OnApplicationShutdown {
  readonly #running = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(
    private readonly database: Database,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(ENVIRONMENT_DIRECTORY) private readonly directory: EnvironmentDirectory,
  ) {}

  async create(caller: Caller, request: CreateTaskExport): Promise<TaskExportView> {
    // An environment that cannot be seen is refused here, not found out in the background.
    for (const environment of request.environments) await this.directory.resolve(environment, caller);
    if (this.#running.size >= MAX_RUNNING) {
      throw new PalestraError('capacity_exhausted', { detail: `${MAX_RUNNING} exports are being written already.`, retryAfterSeconds: 10 });
    }
    const { environments, split, format, prompt_format: promptFormat } = request;
    const row = await this.database.prisma.taskExport.create({
      data: { orgId: caller.orgId, state: 'running', environments, split, format, promptFormat },
    });
    const running = this.#run(caller, row.id, request).finally(() => this.#running.delete(row.id));
    this.#running.set(row.id, running);
    return presentExport(row, null);
  }

  /** null when the organisation has none of that id. */
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
  async file(caller: Caller, id: string): Promise<{ blob: BlobBody; fileName: string }> {
    const row = await this.#row(caller, id);
    if (row === null) throw new PalestraError('export_not_found');
    if (row.blobKey === null) throw new PalestraError('file_not_found', { detail: `This export has no file: it is ${row.state}.` });
    return { blob: await this.blobs.get(row.blobKey), fileName: `tasks.${row.format}` };
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopping.abort(new Error('the server was stopped'));
    await Promise.allSettled(this.#running.values());
  }

  async #row(caller: Caller, id: string) {
    return isUuid(id) ? this.database.prisma.taskExport.findFirst({ where: { id, orgId: caller.orgId } }) : null;
  }

  /** Object first, then the row that points to it. */
  async #run(caller: Caller, id: string, request: CreateTaskExport): Promise<void> {
    const progress: Progress = { total: null, written: 0, failed: 0, failures: [] };
    const teller = setInterval(() => void this.#save(id, { ...counts(progress) }).catch(() => {}), TELL_EVERY_MS);
    const key = `exports/${caller.orgId}/${id}-${newUuid()}.${request.format}`;
    try {
      const file = taskFile(this.#rows(caller, request, progress), request.format, request.prompt_format as PromptFormat);
      const { size } = await this.blobs.put(key, file, { contentType: CONTENT_TYPES[request.format] }, this.#stopping.signal);
      clearInterval(teller);
      await this.#save(id, { ...counts(progress), state: 'complete', blobKey: key, size: BigInt(size), finishedAt: new Date() });
    } catch (error) {
      clearInterval(teller);
      const reason = this.#stopping.signal.aborted ? 'the server was stopped' : describe(error);
      // When even this cannot be stored, the row grows old and is read as failed.
      await this.#save(id, { ...counts(progress), state: 'failed', error: reason, finishedAt: new Date() }).catch(() => {});
    }
  }

  async *#rows(caller: Caller, request: CreateTaskExport, progress: Progress): AsyncGenerator<TaskRow> {
    const rows = taskRows({
      source: backendTaskSource(this.directory, caller),
      environments: request.environments,
      split: request.split,
      maxTasks: request.max_tasks,
      concurrency: CONCURRENCY,
      signal: this.#stopping.signal,
      onTotal: (total) => (progress.total = total),
      onFailure: (failure) => {
        progress.failed += 1;
        if (progress.failures.length < MAX_KEPT_FAILURES) progress.failures.push(failure);
      },
    });
    for await (const row of rows) {
      progress.written += 1;
      yield row;
    }
  }

  async #save(id: string, data: Parameters<Database['prisma']['taskExport']['update']>[0]['data']): Promise<void> {
    await this.database.prisma.taskExport.update({ where: { id }, data });
  }
}

function counts({ total, written, failed, failures }: Progress) {
  return { total, written, failed, failures: failures.map((failure) => ({ ...failure })) };
}

function describe(error: unknown): string {
  if (error instanceof BlobError) return `the file could not be stored: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
