/**
 * Does a piece of work when asked, at most once in `everyMs`: at once, and once more at the end of that time if it was asked for meanwhile.
 * What is asked for while the work is still going on is one more turn, too: nothing queues up, and the last asking is always answered.
 */
export class Pulse {
  #timer: NodeJS.Timeout | null = null;
  #working = false;
  #asked = false;
  #ended = false;

  constructor(
    private readonly work: () => Promise<void>,
    private readonly everyMs: number,
  ) {}

  ask(): void {
    if (this.#ended) return;
    if (this.#timer || this.#working) {
      this.#asked = true;
      return;
    }
    this.#asked = false;
    this.#working = true;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#again();
    }, this.everyMs);
    void this.work()
      // Whoever misses one gets the next one.
      .catch(() => {})
      .finally(() => {
        this.#working = false;
        this.#again();
      });
  }

  end(): void {
    this.#ended = true;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #again(): void {
    if (this.#asked && !this.#working && !this.#timer) this.ask();
  }
}
