import { type RolloutEvent, stringifyJson } from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { uploadRetry } from './retry.ts';

export interface UploaderOptions {
  /** A batch is sent at this many events, */
  maxBatchEvents?: number;
  /** or bytes of JSON (a larger event is sent alone), */
  maxBatchBytes?: number;
  /** or after its oldest event has waited this long. */
  maxAgeMs?: number;
  /** Maximum events in memory; at the limit `add` waits. */
  maxQueued?: number;
  /** Batches sent concurrently. */
  concurrency?: number;
}

/** The outcome: every event is stored or counted as lost. */
export interface UploadReport {
  stored: number;
  lost: number;
  /** The error of the last lost batch. */
  error: Error | null;
}

/** Sends rollout events in bounded, concurrent batches. Event ids make retries safe. `flush` waits for all events. */
export class RolloutUploader {
  readonly #connection: Connection;
  readonly #options: Required<UploaderOptions>;
  readonly #report: UploadReport = { stored: 0, lost: 0, error: null };
  #queue: { event: RolloutEvent; bytes: number }[] = [];
  #queuedBytes = 0;
  #unsettled = 0;
  #sending = 0;
  #timer: NodeJS.Timeout | null = null;
  #waiters: (() => void)[] = [];

  constructor(connection: Connection, options: UploaderOptions = {}) {
    this.#connection = connection;
    this.#options = { maxBatchEvents: 128, maxBatchBytes: 1_000_000, maxAgeMs: 1_000, maxQueued: 20_000, concurrency: 4, ...options };
  }

  /** Queues an event. Resolves when the queue has space, so callers must await it. */
  async add(event: RolloutEvent): Promise<void> {
    while (this.#unsettled >= this.#options.maxQueued) await this.#settled();
    const bytes = Buffer.byteLength(stringifyJson(event));
    this.#queue.push({ event, bytes });
    this.#queuedBytes += bytes;
    this.#unsettled += 1;
    if (this.#queue.length >= this.#options.maxBatchEvents || this.#queuedBytes >= this.#options.maxBatchBytes) this.#pump();
    else this.#timer ??= setTimeout(() => this.#pump(), this.#options.maxAgeMs);
  }

  /** Resolves when every queued event is stored or lost. */
  async flush(): Promise<UploadReport> {
    this.#pump();
    while (this.#unsettled > 0) await this.#settled();
    return { ...this.#report };
  }

  #settled(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #pump(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#queue.length > 0 && this.#sending < this.#options.concurrency) {
      this.#sending += 1;
      void this.#send(this.#takeBatch());
    }
  }

  #takeBatch(): RolloutEvent[] {
    let count = 0;
    let bytes = 0;
    for (const entry of this.#queue) {
      if (count > 0 && (count >= this.#options.maxBatchEvents || bytes + entry.bytes > this.#options.maxBatchBytes)) break;
      count += 1;
      bytes += entry.bytes;
    }
    this.#queuedBytes -= bytes;
    return this.#queue.splice(0, count).map(({ event }) => event);
  }

  async #send(events: RolloutEvent[]): Promise<void> {
    try {
      await this.#connection.json({ method: 'POST', path: '/v1/rollouts', body: { events }, retry: uploadRetry });
      this.#report.stored += events.length;
    } catch (error) {
      this.#report.lost += events.length;
      this.#report.error = error instanceof Error ? error : new Error(String(error));
    }
    this.#sending -= 1;
    this.#unsettled -= events.length;
    this.#pump();
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}
