import { type IngestReceipt, parseJson, type RolloutEvent, stringifyJson } from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { PalestraApiError } from './errors.ts';
import { uploadRetry } from './retry.ts';

export interface UploaderOptions {
  /** A batch is sent at this many events, */
  maxBatchEvents?: number;
  /** or bytes of JSON (a larger event is sent alone), */
  maxBatchBytes?: number;
  /** or after its oldest event has waited this long. */
  maxAgeMs?: number;
  /** Maximum events in memory, and their bytes of JSON; at the limit `add` waits. */
  maxQueued?: number;
  maxQueuedBytes?: number;
  /** Batches sent concurrently. */
  concurrency?: number;
}

/** The outcome: every event is stored, or kept as unsent. */
export interface UploadReport {
  stored: number;
  /** Events that the service has not stored, see `Rollouts.unsent`. */
  unsent: number;
  /** Why the last batch was not stored. */
  error: Error | null;
}

interface QueuedEvent {
  /** JSON. */
  text: string;
  bytes: number;
}

/** After a failed batch no batch is sent for this long, besides by `flush`. */
const PAUSE_MS = 10_000;
/** The events of the batch are at fault, and other batches may succeed. */
const isRefusal = (error: unknown): boolean => error instanceof PalestraApiError && [400, 413, 422].includes(error.status);
const encoder = new TextEncoder();

/**
 * Sends rollout events in bounded, concurrent batches. Event ids make repeats safe, so no event is stored twice. No event is dropped: those
 * that the service does not store stay in the queue and are sent again, and those that it refuses are set aside.
 */
export class RolloutUploader {
  readonly #connection: Connection;
  readonly #options: Required<UploaderOptions>;
  #queue: QueuedEvent[] = [];
  #refused: QueuedEvent[] = [];
  #queuedBytes = 0;
  /** Events and bytes in memory: queued, in flight and refused. */
  #kept = { events: 0, bytes: 0 };
  #stored = 0;
  /** Set while uploads pause or events are refused. */
  #error: Error | null = null;
  readonly #sending = new Set<QueuedEvent[]>();
  #isPaused = false;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #waiters: (() => void)[] = [];

  constructor(connection: Connection, options: UploaderOptions = {}) {
    this.#connection = connection;
    const batches = { maxBatchEvents: 128, maxBatchBytes: 1_000_000, maxAgeMs: 1_000, concurrency: 4 };
    this.#options = { ...batches, maxQueued: 20_000, maxQueuedBytes: 64_000_000, ...options };
  }

  /**
   * Queues an event. Resolves when the queue has space, so callers must await it. If it has none because the service stores nothing,
   * rejects with the error of the last upload, and the event is not queued.
   */
  async add(event: RolloutEvent): Promise<void> {
    const text = stringifyJson(event);
    const bytes = encoder.encode(text).length;
    while (!this.#hasSpace(bytes)) {
      if (this.#sending.size === 0 && (this.#isPaused || this.#queue.length === 0)) throw this.#error!;
      await this.#settled();
    }
    this.#queue.push({ text, bytes });
    this.#queuedBytes += bytes;
    this.#kept.events += 1;
    this.#kept.bytes += bytes;
    if (this.#queue.length >= this.#options.maxBatchEvents || this.#queuedBytes >= this.#options.maxBatchBytes) this.#pump();
    else if (!this.#isPaused) this.#timer ??= setTimeout(() => this.#pump(), this.#options.maxAgeMs);
  }

  /** Resolves when every queued event is stored or the service has failed to store one. */
  async flush(): Promise<UploadReport> {
    this.#resume();
    while (this.#sending.size > 0 || (this.#queue.length > 0 && !this.#isPaused)) await this.#settled();
    return { stored: this.#stored, unsent: this.#kept.events, error: this.#error };
  }

  /** The events that are not known to be stored: refused ones, then those in flight, then those that wait. */
  unsent(): RolloutEvent[] {
    return [...this.#refused, ...[...this.#sending].flat(), ...this.#queue].map(({ text }) => parseJson(text) as RolloutEvent);
  }

  #hasSpace(bytes: number): boolean {
    const { events, bytes: kept } = this.#kept;
    return events === 0 || (events < this.#options.maxQueued && kept + bytes <= this.#options.maxQueuedBytes);
  }

  #settled(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #resume(): void {
    this.#isPaused = false;
    this.#pump();
  }

  #pause(): void {
    this.#isPaused = true;
    this.#clearTimer();
    this.#timer = setTimeout(() => this.#resume(), PAUSE_MS);
    // In browsers a timer is a number.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  #clearTimer(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #pump(): void {
    if (this.#isPaused) return;
    this.#clearTimer();
    while (this.#queue.length > 0 && this.#sending.size < this.#options.concurrency) void this.#send(this.#takeBatch());
  }

  #takeBatch(): QueuedEvent[] {
    let count = 0;
    let bytes = 0;
    for (const entry of this.#queue) {
      if (count > 0 && (count >= this.#options.maxBatchEvents || bytes + entry.bytes > this.#options.maxBatchBytes)) break;
      count += 1;
      bytes += entry.bytes;
    }
    this.#queuedBytes -= bytes;
    return this.#queue.splice(0, count);
  }

  async #send(batch: QueuedEvent[]): Promise<void> {
    this.#sending.add(batch);
    const text = `{"events":[${batch.map((entry) => entry.text).join(',')}]}`;
    try {
      const receipt = await this.#connection.json({ method: 'POST', path: '/v1/rollouts', text, retry: uploadRetry });
      this.#settle(batch, (receipt as Partial<IngestReceipt>).rejected ?? []);
    } catch (error) {
      this.#error = error instanceof Error ? error : new Error(String(error));
      if (isRefusal(error)) this.#refused.push(...batch);
      else {
        this.#queue.unshift(...batch);
        this.#queuedBytes += sum(batch);
        this.#pause();
      }
    }
    this.#sending.delete(batch);
    this.#pump();
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** The service stored the events of a batch besides those that it rejected. */
  #settle(batch: QueuedEvent[], rejected: IngestReceipt['rejected']): void {
    const refused = new Set(rejected.map(({ position }) => position));
    const stored = batch.filter((_event, position) => !refused.has(position));
    this.#refused.push(...batch.filter((_event, position) => refused.has(position)));
    this.#stored += stored.length;
    this.#kept.events -= stored.length;
    this.#kept.bytes -= sum(stored);
    if (rejected.length > 0) this.#error = new PalestraApiError('invalid_body', 422, rejected[0]!.detail);
    else if (!this.#isPaused && this.#refused.length === 0) this.#error = null;
  }
}

const sum = (batch: QueuedEvent[]): number => batch.reduce((total, { bytes }) => total + bytes, 0);
