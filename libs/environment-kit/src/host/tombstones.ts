const LIMIT = 100_000;

/** Ids of ended objects, to distinguish ended from unknown. The oldest ids are removed first. */
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
