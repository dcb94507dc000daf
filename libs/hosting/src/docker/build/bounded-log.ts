import type { LogLine } from '../../provider/provider.port.ts';

/** Of a log; what follows is not kept, except the lines before a failure. */
const MOST_LINES = 50_000;
const LAST_LINES = 100;

/** A line that probably says why a step failed. */
export const COMPLAINT = /(?:error|exception)\b|\b(?:fatal|failed|failure|denied|not found|no such|cannot|traceback)\b/i;

/** The log of a build with a limit: its first lines as they come, and its last lines at the end. */
export class BoundedLog {
  readonly #onLine: (line: LogLine) => void;
  #dropped: LogLine[] = [];
  #lines = 0;

  constructor(onLine: (line: LogLine) => void) {
    this.#onLine = onLine;
  }

  /** How many lines were written: the number of the last one. */
  get lines(): number {
    return this.#lines;
  }

  add(line: LogLine): void {
    if (this.#lines < MOST_LINES) {
      this.#lines += 1;
      this.#onLine(line);
      return;
    }
    if (this.#dropped.length === 0)
      this.#onLine({ ...line, text: `The log has more than ${MOST_LINES} lines; only its last ${LAST_LINES} follow.` });
    this.#dropped.push(line);
    if (this.#dropped.length > LAST_LINES) this.#dropped.shift();
  }

  /** Writes the last lines. */
  end(): void {
    for (const line of this.#dropped) this.#onLine(line);
    this.#dropped = [];
  }
}
