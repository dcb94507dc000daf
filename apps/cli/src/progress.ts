import { SingleBar } from 'cli-progress';

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
    // Nothing has begun, for example because of wrong usage.
    if (this.#total !== null || this.#done > 0) this.#print();
  }

  #print(): void {
    this.#printedAt = Date.now();
    process.stderr.write(`${this.#what}: ${this.#done}${this.#total === null ? '' : `/${this.#total}`}\n`);
  }
}
