import { CRASH_WINDOW_MS } from './decide.ts';
import type { Crash, StoredCrash } from './instance.sql.ts';

/** When failed instances were first seen that are not removed yet. One that cannot be removed must not look as if it had just failed, for ever. */
export class FailureTimes {
  readonly #seenAt = new Map<string, number>();

  /** The crashes of the last ten minutes. Forgets all other instances. */
  of(crashes: readonly StoredCrash[], now: number): Crash[] {
    const left = new Set(crashes.filter(({ ended_at: endedAt }) => endedAt === null).map(({ id }) => id));
    for (const id of this.#seenAt.keys()) if (!left.has(id)) this.#seenAt.delete(id);
    return crashes.flatMap((crash) => {
      if (crash.ended_at !== null) return [{ ...crash, ended_at: crash.ended_at }];
      const seenAt = this.#seenAt.get(crash.id) ?? now;
      this.#seenAt.set(crash.id, seenAt);
      return now - seenAt > CRASH_WINDOW_MS ? [] : [{ ...crash, ended_at: seenAt }];
    });
  }
}
