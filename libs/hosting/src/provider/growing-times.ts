const SECOND = 1_000;

/**
 * Different times for lines of the same moment: engines tell times only to the second, or readers only to the millisecond. A line is at most a
 * second later than it was written, and gets the same time whenever the log is read from `startOf` a time that it had, except where more than a
 * thousand lines come without a pause.
 */
export class GrowingTimes {
  #last = -1;

  /** Where to read again what follows a line of this time, in whole seconds since 1970: from before the moment whose lines led to it. */
  static startOf(at: number): number {
    return Math.max(0, Math.floor(at / SECOND) - 1);
  }

  /** In milliseconds since 1970, as the result. */
  next(at: number): number {
    this.#last = Math.max(this.#last, Math.min(Math.max(at, this.#last + 1), at + SECOND - 1));
    return this.#last;
  }
}
