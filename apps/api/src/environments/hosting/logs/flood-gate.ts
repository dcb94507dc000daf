/** Lines and bytes that a key may write: at once, and then each second. */
export interface FloodLimits {
  lines: number;
  linesPerS: number;
  bytes: number;
  bytesPerS: number;
}

interface Budget {
  lines: number;
  bytes: number;
  at: number;
}
/** Keys that wrote nothing for so long that their budget is full are forgotten when there are more than this. */
const MAX_KEYS = 1_000;

/** Limits what each key writes, by two token buckets. `now`: milliseconds. */
export class FloodGate {
  readonly #budgets = new Map<string, Budget>();

  constructor(
    private readonly limits: FloodLimits,
    private readonly now: () => number,
  ) {}

  /** Whether the key may write a line of this size; then it counts. */
  admit(key: string, bytes: number): boolean {
    const budget = this.#refilled(key);
    if (budget.lines < 1 || budget.bytes < bytes) return false;
    budget.lines -= 1;
    budget.bytes -= bytes;
    return true;
  }

  #refilled(key: string): Budget {
    const { lines, linesPerS, bytes, bytesPerS } = this.limits;
    const at = this.now();
    const known = this.#budgets.get(key);
    if (known === undefined) {
      if (this.#budgets.size >= MAX_KEYS) this.#forgetFull(at);
      const budget = { lines, bytes, at };
      this.#budgets.set(key, budget);
      return budget;
    }
    const seconds = Math.max(0, at - known.at) / 1_000;
    known.lines = Math.min(lines, known.lines + seconds * linesPerS);
    known.bytes = Math.min(bytes, known.bytes + seconds * bytesPerS);
    known.at = at;
    return known;
  }

  #forgetFull(at: number): void {
    const { lines, linesPerS, bytes, bytesPerS } = this.limits;
    const fullAfterMs = Math.max(lines / linesPerS, bytes / bytesPerS) * 1_000;
    for (const [key, budget] of this.#budgets) if (at - budget.at > fullAfterMs) this.#budgets.delete(key);
  }
}
