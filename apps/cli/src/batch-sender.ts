import { PalestraApiError } from '@palestra/client';
import { type EventResult, type RolloutEvent, stringifyJson } from '@palestra/protocol';

/** As the SDK batches (openreward-wire.md 4.1): one larger event goes alone. */
const MAX_EVENTS = 128;
const MAX_BYTES = 1_000_000;
const CONCURRENCY = 4;

interface Waiting {
  event: RolloutEvent;
  /** Of the record that it was made from. */
  where: string;
}

export interface Outcome extends EventResult {
  where: string;
}

/** Sends events in batches, a few at the same time, and tells what became of each of them. Bounded: `add` waits for room. */
export class BatchSender {
  readonly #send: (events: RolloutEvent[]) => Promise<EventResult[]>;
  readonly #tell: (outcome: Outcome) => void;
  readonly #sending = new Set<Promise<void>>();
  #batch: Waiting[] = [];
  #bytes = 0;
  #failure: { error: unknown } | null = null;

  constructor(send: (events: RolloutEvent[]) => Promise<EventResult[]>, tell: (outcome: Outcome) => void) {
    this.#send = send;
    this.#tell = tell;
  }

  /** Rejects when a batch could not be sent, whichever that was. */
  async add(where: string, event: RolloutEvent): Promise<void> {
    const bytes = Buffer.byteLength(stringifyJson(event));
    if (this.#batch.length > 0 && (this.#batch.length >= MAX_EVENTS || this.#bytes + bytes > MAX_BYTES)) await this.#go();
    this.#batch.push({ event, where });
    this.#bytes += bytes;
  }

  async flush(): Promise<void> {
    if (this.#batch.length > 0) await this.#go();
    await Promise.all(this.#sending);
    this.#check();
  }

  async #go(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    this.#bytes = 0;
    while (this.#sending.size >= CONCURRENCY) {
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

  async #settle(batch: readonly Waiting[]): Promise<void> {
    const results = await this.#send(batch.map(({ event }) => event)).catch((error: unknown) => {
      // Nothing of the batch could be kept: the reasons are in the error, and other batches may fare better.
      if (!(error instanceof PalestraApiError) || error.code !== 'invalid_body') throw error;
      const reasons = reasonsOf(error.detail);
      return batch.map(({ event }, position): EventResult => ({
        position,
        event_id: event.eventId,
        status: 'rejected',
        detail: reasons.get(position) ?? error.detail,
      }));
    });
    for (const result of results) this.#tell({ ...result, where: batch[result.position]!.where });
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error;
  }
}

/** Of a 422: `[{loc: ['body', 'events', 3], msg}]` as JSON text. */
function reasonsOf(detail: string): Map<number, string> {
  try {
    const items = JSON.parse(detail) as { loc: unknown[]; msg: string }[];
    return new Map(items.map(({ loc, msg }) => [Number(loc.at(-1)), msg]));
  } catch {
    return new Map();
  }
}
