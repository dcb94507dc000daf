import { HostingError } from '../provider/hosting-error.ts';
import { type LogLine, MAX_LINE_CHARS } from '../provider/provider.port.ts';

const KEPT = 200;
/** In a traceback of Python, before the error. */
const PLACE = /^\s*File "([^"]+)", line (\d+)/;
const ERROR = /\berror\b|\bERR!|not found|No matching distribution/i;

/** Numbers the lines of a build, and finds the one that says why it failed. */
export class BuildLog {
  readonly #onLine: (line: LogLine) => void;
  #count = 0;
  /** The last lines of the running step. */
  #step: { number: number; text: string }[] = [];

  constructor(onLine: (line: LogLine) => void) {
    this.#onLine = onLine;
  }

  /** Lines so far. */
  get count(): number {
    return this.#count;
  }

  /** Begins a step: what failed before does not explain a failure of it. */
  begin(text: string): void {
    this.#step = [];
    this.add(text, 'stdout');
  }

  add(text: string, stream: LogLine['stream']): void {
    this.#count += 1;
    this.#step.push({ number: this.#count, text });
    if (this.#step.length > KEPT) this.#step.shift();
    this.#onLine({ at: new Date(), stream, text: text.slice(0, MAX_LINE_CHARS) });
  }

  /** `build_failed` with the first line of the step that names an error, else its last one. */
  failure(what: string): HostingError {
    const [command, ...output] = this.#step;
    const found = output.find(({ text }) => ERROR.test(text)) ?? output.findLast(({ text }) => text.trim() !== '') ?? command;
    const [, file, line] =
      output.findLast(({ number, text }) => number < (found?.number ?? 0) && PLACE.test(text))?.text.match(PLACE) ?? [];
    const place = file === undefined ? '' : `${file}, line ${line}: `;
    const reason = found === undefined ? '' : `: ${place}${found.text.trim().slice(0, 500)}`;
    return new HostingError('build_failed', `${what}${reason}`, { line: found?.number });
  }
}
