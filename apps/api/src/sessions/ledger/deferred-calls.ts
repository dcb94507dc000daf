import { MicroBatcher } from '@palestra/kit';
import type { CallIntent, CallResult, DeferredCall } from '@palestra/session';
import { isRefusedValue } from '../../platform/database/database-errors.ts';

/** A call that takes longer is stored as running, so that readers of the session see it. */
const RUNNING_AFTER_MS = 100;
const BATCH = { maxItems: 2_048, maxAgeMs: 80, maxQueued: Infinity, concurrency: 1, isOfItem: isRefusedValue };
/** While more rows wait, calls are written before they run again. */
const MAX_WAITING = 4_096;
/** Characters. Longer rows are written at once, so that they do not fill the memory. */
const LONG_ROW = 16_384;

export interface DeferredRow {
  call: CallIntent;
  /** null: it runs. */
  end: Omit<CallResult, 'taskId'> | null;
}

/**
 * Rows of calls that no client can resume: each is written once, with its outcome (docs/adr/0002). One batch is written at a time, so that rows
 * of a session keep their order.
 */
export class DeferredCalls {
  readonly #running = new Map<CallIntent, NodeJS.Timeout>();
  readonly #rows: MicroBatcher<DeferredRow, void>;

  /** `write` stores rows, of which some may be stored already. `onLost`: a row could not be stored. */
  constructor(write: (rows: DeferredRow[]) => Promise<void>, onLost: (error: unknown) => void) {
    this.#rows = new MicroBatcher({
      ...BATCH,
      flush: async (rows): Promise<void[]> => {
        try {
          await write(latestPerCall(rows));
        } catch (error) {
          if (rows.length > 1 && isRefusedValue(error)) throw error;
          onLost(error);
        }
        return [];
      },
    });
  }

  /** null: too many rows wait. */
  begin(call: CallIntent): DeferredCall | null {
    if (this.#rows.waiting >= MAX_WAITING) return null;
    this.#running.set(
      call,
      setTimeout(() => this.#rows.post({ call, end: null }), RUNNING_AFTER_MS),
    );
    return { end: (end) => this.#end(call, end) };
  }

  /** Resolves when every row is stored, those of running calls too. */
  async drain(): Promise<void> {
    for (const [call, timer] of this.#running) {
      clearTimeout(timer);
      this.#rows.post({ call, end: null });
    }
    await this.#rows.drain();
  }

  #end(call: CallIntent, end: Omit<CallResult, 'taskId'>): void {
    clearTimeout(this.#running.get(call));
    this.#running.delete(call);
    const { outcome } = end;
    this.#rows.post({ call, end }, outcome.type !== 'result' || call.input.length + outcome.text.length > LONG_ROW);
  }
}

/** A statement must not write a row twice: the first row of a call gets its place, the last one its outcome. */
export function latestPerCall(rows: DeferredRow[]): DeferredRow[] {
  const latest = new Map(rows.map((row) => [row.call.taskId, row]));
  return latest.size === rows.length ? rows : [...latest.values()];
}
