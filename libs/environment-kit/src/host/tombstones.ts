const LIMIT = 100_000;

/** Ids of what once lived, so that it can be told from what never did; the oldest are forgotten first. */
export class Tombstones {
  readonly #sids = new Set<string>();

  add(sid: string): void {
    this.#sids.delete(sid);
    this.#sids.add(sid);
    if (this.#sids.size > LIMIT) this.#sids.delete(this.#sids.values().next().value!);
  }

  has(sid: string): boolean {
    return this.#sids.has(sid);
  }
}
