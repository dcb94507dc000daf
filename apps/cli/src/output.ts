import { SingleBar } from 'cli-progress';

/** Prints plain-text columns as wide as their widest cell. */
export function printTable(head: string[], rows: (string | number | null)[][]): void {
  const cells = [head, ...rows.map((row) => row.map((cell) => printable(String(cell ?? '-'))))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  for (const row of cells)
    process.stdout.write(
      `${row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd()}\n`,
    );
}

/** Replaces control characters, because names are untrusted. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these characters are replaced
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
}

/** Like `printable`, but keeps line breaks. */
export const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');

export interface Progress {
  total(count: number): void;
  step(): void;
  /** Prints a line above the bar. */
  line(text: string): void;
  stop(): void;
}

const LINE_EVERY_MS = 2_000;

/** A bar on a terminal, else a line every two seconds. On stderr, because stdout is for results. */
export function startProgress(what: string): Progress {
  return process.stderr.isTTY ? new Bar(what) : new Lines(what);
}

class Bar implements Progress {
  readonly #bar: SingleBar;

  constructor(what: string) {
    this.#bar = new SingleBar({ format: `${what} {bar} {value}/{total} {eta_formatted}`, hideCursor: true, stream: process.stderr });
    this.#bar.start(0, 0);
  }

  total(count: number): void {
    this.#bar.setTotal(count);
  }

  step(): void {
    this.#bar.increment();
  }

  line(text: string): void {
    process.stderr.write(`\r\u001b[K${text}\n`);
    this.#bar.updateETA();
  }

  stop(): void {
    this.#bar.stop();
  }
}

class Lines implements Progress {
  readonly #what: string;
  /** Null while the total is unknown. */
  #total: number | null = null;
  #done = 0;
  #printedAt = Date.now();

  constructor(what: string) {
    this.#what = what;
  }

  total(count: number): void {
    this.#total = count;
  }

  step(): void {
    this.#done += 1;
    if (Date.now() - this.#printedAt >= LINE_EVERY_MS) this.#print();
  }

  line(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  stop(): void {
    this.#print();
  }

  #print(): void {
    this.#printedAt = Date.now();
    process.stderr.write(`${this.#what}: ${this.#done}${this.#total === null ? '' : `/${this.#total}`}\n`);
  }
}
