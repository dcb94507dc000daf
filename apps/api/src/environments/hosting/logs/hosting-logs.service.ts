import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { MicroBatcher } from '@palestra/kit';
import type { SecretMask } from '@palestra/session';
import type { Logger } from 'pino';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { FloodGate } from './flood-gate.ts';
import { insertLines, type LogSource, type NewLogLine } from './hosting-log.sql.ts';
import { LogSink, type LogStore } from './log-sink.ts';

/** A line is visible after this time at most. */
const FLUSH_MS = 250;
const BATCH = 1_000;
/** Of one environment: a burst, then a rate. */
const FLOOD = { lines: 20_000, linesPerS: 200, bytes: 8 * 1024 * 1024, bytesPerS: 128 * 1024 };
/** Lines of so many instances share a statement. */
const STORES = { maxItems: 100, maxAgeMs: 0, maxQueued: 100_000, concurrency: 1 };
/** Lines that wait while the database does not answer. Further ones are lost. */
const MAX_WAITING = 3 * FLOOD.lines;

/** Stores lines of builds and instances in batches, in the order in which this process wrote them. */
@Injectable()
export class HostingLogs implements LogStore, OnApplicationShutdown {
  #waiting: NewLogLine[] = [];
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();
  #isStopped = false;
  readonly #stores: MicroBatcher<readonly NewLogLine[], void>;
  readonly #gate = new FloodGate(FLOOD, () => performance.now());

  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#stores = new MicroBatcher({ ...STORES, flush: (all) => this.#insert(all.flat()).then(() => all.map(() => {})) });
  }

  /** Where the lines of a deploy or an instance go. `mask`: of the environment's secrets. */
  sink(source: LogSource, mask: SecretMask): LogSink {
    return new LogSink(this, source, mask);
  }

  admit(environmentId: string, bytes: number): boolean {
    return this.#gate.admit(environmentId, bytes);
  }

  append(line: NewLogLine): void {
    if (this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push(line);
    this.#arm();
  }

  /** Stores lines at once, after those that are being stored. Rejects when the database does not answer; the caller keeps them. */
  store(lines: readonly NewLogLine[]): Promise<void> {
    return lines.length === 0 ? Promise.resolve() : this.#stores.add(lines);
  }

  /** Resolves when all lines that were appended before are stored. Rejects when the database does not answer; they stay. */
  flush(): Promise<void> {
    const writing = this.#writing.then(() => this.#write());
    this.#writing = writing.catch(() => {});
    return writing;
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#isStopped = true;
    await this.flush().catch(() => {});
  }

  #insert(lines: readonly NewLogLine[]): Promise<void> {
    const writing = this.#writing.then(() => insertLines(this.database.pool, lines));
    this.#writing = writing.catch(() => {});
    return writing;
  }

  #arm(): void {
    if (this.#isStopped) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.flush().catch((error: unknown) => {
        this.logger.warn({ err: error }, 'log lines were not stored; this is repeated');
        this.#arm();
      });
    }, FLUSH_MS);
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      await insertLines(this.database.pool, batch);
      this.#waiting = this.#waiting.slice(batch.length);
    }
  }
}
