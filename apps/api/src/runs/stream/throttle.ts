/**
 * Runs `work` on request, at most once per `intervalMs`: at once, and again at the end of the interval if a request came meanwhile. Runs never
 * overlap, requests do not queue, and a run always follows the last request.
 */
export class Throttle {
  #timer: NodeJS.Timeout | null = null;
  #working = false;
  #requested = false;
  #ended = false;

  constructor(
    private readonly work: () => Promise<void>,
    private readonly intervalMs: number,
  ) {}

  request(): void {
    if (this.#ended) return;
    if (this.#timer || this.#working) {
      this.#requested = true;
      return;
    }
    this.#requested = false;
    this.#working = true;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#runIfRequested();
    }, this.intervalMs);
    void this.work()
      // The next run repeats what failed.
      .catch(() => {})
      .finally(() => {
        this.#working = false;
        this.#runIfRequested();
      });
  }

  end(): void {
    this.#ended = true;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #runIfRequested(): void {
    if (this.#requested && !this.#working && !this.#timer) this.request();
  }
}
