import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { createGunzip, gzipSync } from 'node:zlib';
import { BlobError, type BlobStore } from '@palestra/blobs';
import type { LogFilter, LogRow, LogScope } from './hosting-log.sql.ts';

/** Everything of an environment that hosting stores as objects: old logs and uploaded sources. */
export const hostingPrefix = (environmentId: string): string => `hosting/${environmentId}/`;
const runtimePrefix = (environmentId: string): string => `${hostingPrefix(environmentId)}logs/runtime/`;
const buildKey = (environmentId: string, deployId: string): string => `${hostingPrefix(environmentId)}logs/builds/${deployId}.ndjson.gz`;

const SEQ_DIGITS = 16;
const DEADLINE_MS = 60_000;
const LIST = 1_000;
const CONTENT_TYPE = 'application/gzip';

/** A stored part of the log of an environment's instances. */
export interface LogChunk {
  key: string;
  /** `seq` of its last line. */
  last: number;
  /** Time of its last line, milliseconds since the epoch. */
  lastAt: number;
}

/** Old log lines, as objects of JSON lines: one for each build, and parts of the log of all instances of an environment, in their order. */
export class LogArchive {
  constructor(private readonly blobs: BlobStore) {}

  async storeBuild(environmentId: string, deployId: string, rows: readonly LogRow[]): Promise<void> {
    await this.#put(buildKey(environmentId, deployId), rows);
  }

  async hasBuild(environmentId: string, deployId: string): Promise<boolean> {
    try {
      await this.blobs.head(buildKey(environmentId, deployId), AbortSignal.timeout(DEADLINE_MS));
      return true;
    } catch (error) {
      if (error instanceof BlobError && error.kind === 'not_found') return false;
      throw error;
    }
  }

  async deleteBuild(environmentId: string, deployId: string): Promise<void> {
    await this.blobs.delete(buildKey(environmentId, deployId), AbortSignal.timeout(DEADLINE_MS));
  }

  /** `rows`: at least one. */
  async storeChunk(environmentId: string, rows: readonly LogRow[]): Promise<void> {
    const [first, last] = [rows[0]!, rows.at(-1)!];
    const name = [String(first.seq).padStart(SEQ_DIGITS, '0'), String(last.seq).padStart(SEQ_DIGITS, '0'), last.at.getTime()].join('-');
    await this.#put(`${runtimePrefix(environmentId)}${name}.ndjson.gz`, rows);
  }

  /** In the order of their lines. */
  async chunks(environmentId: string): Promise<LogChunk[]> {
    const found: LogChunk[] = [];
    for (let pageToken: string | undefined; ;) {
      const page = await this.blobs.list(
        { prefix: runtimePrefix(environmentId), limit: LIST, ...(pageToken !== undefined && { pageToken }) },
        AbortSignal.timeout(DEADLINE_MS),
      );
      for (const { key } of page.blobs) {
        const [, last, lastAt] = /(\d+)-(\d+)\.ndjson\.gz$/.exec(key) ?? [];
        if (last !== undefined && lastAt !== undefined) found.push({ key, last: Number(last), lastAt: Number(lastAt) });
      }
      if (page.nextPageToken === null) return found;
      pageToken = page.nextPageToken;
    }
  }

  async deleteChunk({ key }: LogChunk): Promise<void> {
    await this.blobs.delete(key, AbortSignal.timeout(DEADLINE_MS));
  }

  /** Archived lines after `after` that the filter selects, in their order. */
  async *lines(scope: LogScope, after: number, filter: LogFilter, signal: AbortSignal): AsyncGenerator<LogRow> {
    const keys =
      scope.kind === 'deploy'
        ? [buildKey(scope.environmentId, scope.deployId)]
        : (await this.chunks(scope.environmentId)).filter(({ last }) => last > after).map(({ key }) => key);
    for (const key of keys)
      for await (const row of this.#read(key, signal)) if (row.seq > after && isSelected(row, scope, filter)) yield row;
  }

  async #put(key: string, rows: readonly LogRow[]): Promise<void> {
    const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    await this.blobs.put(key, gzipSync(text), { contentType: CONTENT_TYPE }, AbortSignal.timeout(DEADLINE_MS));
  }

  /** Nothing if it was deleted. */
  async *#read(key: string, signal: AbortSignal): AsyncGenerator<LogRow> {
    let body: Readable;
    try {
      body = (await this.blobs.get(key, undefined, signal)).body as Readable;
    } catch (error) {
      if (error instanceof BlobError && error.kind === 'not_found') return;
      throw error;
    }
    const text = body.pipe(createGunzip());
    body.once('error', (error) => text.destroy(error));
    try {
      for await (const line of createInterface({ input: text, crlfDelay: Infinity })) {
        const row = JSON.parse(line) as LogRow;
        yield { ...row, at: new Date(row.at) };
      }
    } finally {
      text.destroy();
      body.destroy();
    }
  }
}

function isSelected(row: LogRow, scope: LogScope, { severities, text }: LogFilter): boolean {
  if (scope.kind === 'instances') {
    if (scope.versionId !== null && row.version_id !== scope.versionId) return false;
    if (scope.instanceId !== null && row.source !== scope.instanceId) return false;
  }
  return (severities === null || severities.includes(row.severity)) && (text === null || row.text.toLowerCase().includes(text));
}
