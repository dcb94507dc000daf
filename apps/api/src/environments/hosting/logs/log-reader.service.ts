import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import { type HostingLogLine, type HostingLogQuery, LOG_SEVERITIES } from '@palestra/protocol';
import { Database } from '../../../platform/database/database.ts';
import { BLOB_STORE } from '../../../platform/tokens.ts';
import { HostingEvents } from '../hosting-events.ts';
import {
  type LogFilter,
  type LogRow,
  type LogScope,
  type LogSelection,
  selectLastLines,
  selectLastSeq,
  selectLines,
} from './hosting-log.sql.ts';
import { LogArchive } from './log-archive.ts';

const PAGE = 500;
/** A follower looks for new lines at this interval although no notification arrived. */
const POLL_MS = 2_000;

export interface LogRead {
  scope: LogScope;
  query: Omit<HostingLogQuery, 'instance' | 'version'>;
  /** Older lines may be in the archive. */
  isArchived: boolean;
  /** For a follower: whether nothing will be written any more. Asked before the last lines are read. */
  isOver: () => Promise<boolean>;
}

/** Reads logs: old lines from objects, then the database, then what is written. */
@Injectable()
export class LogReader {
  readonly #archive: LogArchive;

  constructor(
    private readonly database: Database,
    private readonly events: HostingEvents,
    @Inject(BLOB_STORE) blobs: BlobStore,
  ) {
    this.#archive = new LogArchive(blobs);
  }

  /** The selected lines in their order. Without `follow` at most `limit`. With `follow` until the log is over or `signal` aborts. */
  async *read({ scope, query, isArchived, isOver }: LogRead, signal: AbortSignal): AsyncGenerator<HostingLogLine> {
    const filter = filterOf(query);
    let left = query.follow ? Infinity : query.limit;
    let { after } = query;
    if (query.tail !== undefined) {
      const upTo = await selectLastSeq(this.database.pool, scope);
      for (const row of await this.#tail(scope, { ...filter, after, upTo, limit: query.tail }, isArchived, signal)) yield lineOf(row);
      if (!query.follow) return;
      after = Math.max(after, upTo);
    } else if (isArchived) {
      for await (const row of this.#archive.lines(scope, after, filter, signal)) {
        yield lineOf(row);
        after = row.seq;
        if ((left -= 1) === 0) return;
      }
    }
    for (let news = Promise.resolve(); !signal.aborted; await news) {
      const hasEnded = !query.follow || (await isOver());
      news = this.#news(scope.environmentId, signal);
      const upTo = await selectLastSeq(this.database.pool, scope);
      for (;;) {
        const rows = await selectLines(this.database.pool, scope, { ...filter, after, upTo, limit: Math.min(PAGE, left) });
        for (const row of rows) yield lineOf(row);
        after = rows.at(-1)?.seq ?? after;
        left -= rows.length;
        if (left === 0 || signal.aborted) return;
        if (rows.length < PAGE) break;
      }
      after = Math.max(after, upTo);
      if (hasEnded) return;
    }
  }

  async #tail(scope: LogScope, selection: LogSelection, isArchived: boolean, signal: AbortSignal): Promise<LogRow[]> {
    const { after, limit } = selection;
    const rows = await selectLastLines(this.database.pool, scope, selection);
    if (!isArchived || rows.length >= limit) return rows;
    const older: LogRow[] = [];
    const before = rows[0]?.seq ?? Infinity;
    for await (const row of this.#archive.lines(scope, after, selection, signal)) {
      if (row.seq >= before) break;
      older.push(row);
      if (older.length > limit - rows.length) older.shift();
    }
    return [...older, ...rows];
  }

  /** Resolves when the environment may have new lines. */
  #news(environmentId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        unsubscribe();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, POLL_MS).unref();
      const unsubscribe = this.events.onLog(environmentId, end);
      signal.addEventListener('abort', end, { once: true });
      if (signal.aborted) end();
    });
  }
}

const filterOf = ({ severity, q }: Pick<HostingLogQuery, 'severity' | 'q'>): LogFilter => ({
  severities: severity === undefined ? null : LOG_SEVERITIES.slice(LOG_SEVERITIES.indexOf(severity)),
  text: q?.toLowerCase() ?? null,
});

const lineOf = ({ seq, source, at, stream, severity, text }: LogRow): HostingLogLine => ({
  seq,
  source,
  at: at.toISOString(),
  stream,
  severity,
  text,
});
