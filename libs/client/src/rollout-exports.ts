import type { RolloutExportBody, RolloutExportList, RolloutExportView } from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { noRetry } from './retry.ts';

/** Exports of rollouts, which the server writes as files. */
export class RolloutExports {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async create(request: RolloutExportBody): Promise<RolloutExportView> {
    return (await this.#connection.json({ method: 'POST', path: '/v1/exports', body: request, retry: noRetry })) as RolloutExportView;
  }

  async get(id: string): Promise<RolloutExportView> {
    return (await this.#connection.json({ path: `/v1/exports/${encodeURIComponent(id)}` })) as RolloutExportView;
  }

  async list(): Promise<RolloutExportView[]> {
    return ((await this.#connection.json({ path: '/v1/exports' })) as RolloutExportList).exports;
  }

  /** Cancels an export in progress and erases its files. */
  async delete(id: string): Promise<void> {
    await this.#connection.json({ method: 'DELETE', path: `/v1/exports/${encodeURIComponent(id)}` });
  }

  /** Downloads a file of a finished export. */
  download(id: string, name: string): Promise<AsyncIterable<Uint8Array>> {
    return this.#connection.download({ path: `/v1/exports/${encodeURIComponent(id)}/files/${encodeURIComponent(name)}` });
  }
}
