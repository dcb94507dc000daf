/** Reproducible random numbers (mulberry32 over a hashed seed). Not for secrets. */
export class SeededRandom {
  #state: number;

  constructor(...seed: (string | number)[]) {
    // FNV-1a spreads neighbouring seeds.
    this.#state = 0x811c9dc5;
    for (const character of seed.join('/')) this.#state = Math.imul(this.#state ^ character.codePointAt(0)!, 0x01000193);
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from `low` to `high` inclusive. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<T>(items: readonly T[]): T {
    return items[this.integer(0, items.length - 1)]!;
  }

  /** `count` distinct items in random order. */
  sample<T>(items: readonly T[], count: number): T[] {
    const rest = [...items];
    return Array.from({ length: count }, () => rest.splice(this.integer(0, rest.length - 1), 1)[0]!);
  }

  shuffle<T>(items: readonly T[]): T[] {
    return this.sample(items, items.length);
  }
}
