import type { LogLine } from '@palestra/hosting';
import type { LogSeverity } from '@palestra/protocol';
import type { HostingLogs } from '../logs/hosting-logs.service.ts';
import type { LogSink } from '../logs/log-sink.ts';
import { SeverityGuess } from '../logs/severity.ts';

/** Of one deploy. What a build writes beyond that is left out, except its end. */
const MAX_LINES = 50_000;
const MAX_CHARS = 16 * 1024 * 1024;
const KEPT_AT_END = 200;
/** A stack of Python, whose last line is the error. */
const STACK = /^(?:\s|Traceback \()/;

/** The log of one deploy. */
export class DeployLog {
  #chars = 0;
  /** Numbers of the log's lines, by the number of the builder's line, both from 1. */
  readonly #numbers: number[] = [];
  #last: LogLine[] = [];
  #omitted = 0;

  /** `lines`: that the log has already, from an earlier attempt. */
  constructor(
    private readonly sink: LogSink,
    private readonly logs: HostingLogs,
    private lines: number,
  ) {}

  /** Text of this service, each line of it as a line. */
  note(text: string, severity?: LogSeverity): void {
    for (const line of text.split('\n')) {
      this.lines += 1;
      this.sink.note(line, severity);
    }
  }

  /**
   * Notes why the deploy ended. Returns the number of the line that tells most: of several the first that reads like an error and is not the
   * beginning of a stack, else the last.
   */
  noteEnd(detail: string, severity: LogSeverity): number {
    const first = this.lines + 1;
    this.note(detail, severity);
    const guess = new SeverityGuess('info');
    const telling = detail.split('\n').findIndex((line) => guess.of(line) === 'error' && !STACK.test(line));
    return telling === -1 ? this.lines : first + telling;
  }

  /** A text of several lines as the log shows it. */
  clean(text: string): string {
    return text
      .split('\n')
      .map((line) => this.sink.clean(line))
      .join('\n');
  }

  /** A line of the builder. */
  write(line: LogLine): void {
    this.#numbers.push(this.lines + 1);
    this.#chars += line.text.length;
    if (this.lines < MAX_LINES && this.#chars < MAX_CHARS) {
      if (this.sink.write(line)) this.lines += 1;
      return;
    }
    this.#last.push(line);
    if (this.#last.length <= KEPT_AT_END) return;
    this.#last.shift();
    this.#omitted += 1;
  }

  /** The number of the builder's line in this log, from 1; null if the builder has no such line. */
  numberOf(line: number | null): number | null {
    return line === null ? null : (this.#numbers[line - 1] ?? null);
  }

  /** Resolves when everything is stored. */
  async flush(): Promise<void> {
    if (this.#omitted > 0)
      this.note(`The build wrote too much. ${this.#omitted} lines are left out here; the last ones follow.`, 'warning');
    this.#omitted = 0;
    for (const line of this.#last) if (this.sink.write(line)) this.lines += 1;
    this.#last = [];
    this.sink.end();
    await this.logs.flush();
  }
}
