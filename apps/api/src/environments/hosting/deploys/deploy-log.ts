import type { LogLine } from '@palestra/hosting';
import type { LogSeverity } from '@palestra/protocol';
import type { HostingLogs } from '../logs/hosting-logs.service.ts';
import type { LogSink } from '../logs/log-sink.ts';

/** Of one deploy. What a build writes beyond that is left out, except its end. */
const MAX_LINES = 50_000;
const MAX_CHARS = 16 * 1024 * 1024;
const KEPT_AT_END = 200;

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

  /** A line of this service. */
  note(text: string, severity?: LogSeverity): void {
    this.lines += 1;
    this.sink.note(text, severity);
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
