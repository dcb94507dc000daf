import type { StoredInstance } from './instance.sql.ts';

/** Asks whether an instance answers: its HTTP status, or null. */
type Ask = (row: StoredInstance, endpoint: string, ms: number) => Promise<number | null>;

const EVERY_MS = 15_000;
/** A tool that blocks its server keeps it from answering for a while. */
const ANSWER_MS = 10_000;
const MOST_MISSES = 4;
/** Requests at the same time. */
const CONCURRENCY = 64;

interface Seen {
  dueAt: number;
  misses: number;
  isAsking: boolean;
}

/** Asks ready instances now and then whether they still answer. */
export class InstanceHealth {
  readonly #ask: Ask;
  readonly #seen = new Map<string, Seen>();
  #asking = 0;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** It has not answered several times in a row. */
  isSilent(id: string): boolean {
    return (this.#seen.get(id)?.misses ?? 0) >= MOST_MISSES;
  }

  /** Asks those that are due, and forgets all others. */
  check(ready: readonly StoredInstance[], now: number): void {
    const known = new Set(ready.map(({ id }) => id));
    for (const id of this.#seen.keys()) if (!known.has(id)) this.#seen.delete(id);
    for (const row of ready) {
      const seen = this.#seen.get(row.id);
      // Spread, so that instances that started together are not asked together.
      if (seen === undefined) this.#seen.set(row.id, { dueAt: now + EVERY_MS * (0.5 + Math.random() / 2), misses: 0, isAsking: false });
      else if (seen.dueAt <= now && !seen.isAsking && this.#asking < CONCURRENCY && row.endpoint !== null) void this.#check(row, seen);
    }
  }

  async #check(row: StoredInstance, seen: Seen): Promise<void> {
    seen.isAsking = true;
    this.#asking += 1;
    const status = await this.#ask(row, row.endpoint!, ANSWER_MS);
    this.#asking -= 1;
    seen.isAsking = false;
    seen.misses = status === null ? seen.misses + 1 : 0;
    seen.dueAt = Date.now() + EVERY_MS;
  }
}
