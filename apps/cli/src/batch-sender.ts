import { PalestraApiError } from '@palestra/client';
import { type EventResult, type RolloutEvent, stringifyJson } from '@palestra/protocol';

/** The batch limits of the SDK (docs/reference/ors.md#batches). A larger event is sent alone. */
const MAX_EVENTS = 128;
const MAX_BYTES = 1_000_000;
const CONCURRENCY = 4;

interface QueuedEvent {
  event: RolloutEvent;
  /** The record that the event comes from. */
  where: string;
}

export interface Outcome extends EventResult {
  where: string;
}

/** Sends events in batches, `concurrency` of them at the same time, and reports the outcome of each event. `add` waits while too many batches are in progress. */
export class BatchSender {
  readonly #send: (events: RolloutEvent[]) => Promise<EventResult[]>;
  readonly #report: (outcome: Outcome) => void;
  readonly #sending = new Set<Promise<void>>();
  readonly #concurrency: number;
  #batch: QueuedEvent[] = [];
  #bytes = 0;
  #failure: { error: unknown } | null = null;

  constructor(send: (events: RolloutEvent[]) => Promise<EventResult[]>, report: (outcome: Outcome) => void, concurrency = CONCURRENCY) {
    this.#concurrency = concurrency;
    this.#send = send;
    this.#report = report;
  }

  /** Rejects if any batch could not be sent. */
  async add(where: string, event: RolloutEvent): Promise<void> {
    const bytes = Buffer.byteLength(stringifyJson(event));
    if (this.#batch.length > 0 && (this.#batch.length >= MAX_EVENTS || this.#bytes + bytes > MAX_BYTES)) await this.#sendBatch();
    this.#batch.push({ event, where });
    this.#bytes += bytes;
  }

  async flush(): Promise<void> {
    if (this.#batch.length > 0) await this.#sendBatch();
    await Promise.all(this.#sending);
    this.#check();
  }

  async #sendBatch(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    this.#bytes = 0;
    while (this.#sending.size >= this.#concurrency) {
      await Promise.race(this.#sending);
    }
    this.#check();
    const sent = this.#settle(batch)
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => this.#sending.delete(sent));
    this.#sending.add(sent);
  }

  async #settle(batch: readonly QueuedEvent[]): Promise<void> {
    const results = await this.#send(batch.map(({ event }) => event)).catch((error: unknown) => {
      // No event of the batch is valid: the error has the reasons, and other batches may succeed.
      if (!(error instanceof PalestraApiError) || error.code !== 'invalid_body') throw error;
      const reasons = reasonsOf(error.detail);
      return batch.map(({ event }, position): EventResult => ({
        position,
        event_id: event.eventId,
        status: 'rejected',
        detail: reasons.get(position) ?? error.detail,
      }));
    });
    for (const result of results) this.#report({ ...result, where: batch[result.position]!.where });
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error;
  }
}

/** The reasons of a 422 by position, from the JSON text `[{loc: ['body', 'events', 3], msg}]`. */
function reasonsOf(detail: string): Map<number, string> {
  try {
    const items = JSON.parse(detail) as { loc: unknown[]; msg: string }[];
    return new Map(items.map(({ loc, msg }) => [Number(loc.at(-1)), msg]));
  } catch {
    return new Map();
  }
}
