const LIMIT = 100_000;

/** SIDs that once lived, so that they answer 410 and not 404; the oldest are forgotten first. */
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
