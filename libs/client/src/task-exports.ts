import type { TaskExportBody, TaskExportView } from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { noRetry } from './retry.ts';

/** Exports of tasks, which the server writes. */
export class TaskExports {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async create(request: TaskExportBody): Promise<TaskExportView> {
    return (await this.#connection.json({ method: 'POST', path: '/v1/exports/tasks', body: request, retry: noRetry })) as TaskExportView;
  }

  async get(id: string): Promise<TaskExportView> {
    return (await this.#connection.json({ path: `/v1/exports/${encodeURIComponent(id)}` })) as TaskExportView;
  }

  /** Cancels an export in progress and erases its file. */
  async cancel(id: string): Promise<void> {
    await this.#connection.json({ method: 'DELETE', path: `/v1/exports/${encodeURIComponent(id)}` });
  }

  /** Downloads the file of a finished export. */
  download(id: string): Promise<AsyncIterable<Uint8Array>> {
    return this.#connection.download({ path: `/v1/exports/${encodeURIComponent(id)}/file` });
  }
}
