const SLICE_MS = 8;

/**
 * Keeps the event loop free during long work: between its pieces, `if (slice.isOver) await slice.renew()` lets other work run every 8 ms.
 * Pieces should be shorter than that.
 */
export class TimeSlice {
  #startedAt = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#startedAt > SLICE_MS;
  }

  async renew(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#startedAt = performance.now();
  }
}
