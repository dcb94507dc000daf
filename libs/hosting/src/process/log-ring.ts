/** The last lines of a process, limited in number and length. */
export class LogRing {
  readonly #lines: string[] = [];
  readonly #maxLines: number;
  readonly #maxLineLength: number;

  constructor(maxLines = 500, maxLineLength = 4_096) {
    this.#maxLines = maxLines;
    this.#maxLineLength = maxLineLength;
  }

  add(line: string): void {
    this.#lines.push(line.length > this.#maxLineLength ? `${line.slice(0, this.#maxLineLength)}…` : line);
    if (this.#lines.length > this.#maxLines) this.#lines.shift();
  }

  /** Oldest first. */
  lines(): string[] {
    return [...this.#lines];
  }
}
