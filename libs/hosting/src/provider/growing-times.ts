const SECOND = 1_000;

/**
 * Different times for lines of the same moment: engines tell times only to the second, or readers only to the millisecond. A line gets the same
 * time whenever the log is read from the beginning of a second, except where a second has more than a thousand lines.
 */
export class GrowingTimes {
  #last = -1;

  /** In milliseconds since 1970, as the result. */
  next(at: number): number {
    const second = Math.floor(at / SECOND) * SECOND;
    const later = this.#last < second ? at : Math.max(at, this.#last + 1);
    this.#last = Math.min(later, second + SECOND - 1);
    return this.#last;
  }
}
