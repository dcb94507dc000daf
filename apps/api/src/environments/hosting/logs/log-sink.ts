import type { LogLine } from '@palestra/hosting';
import type { LogSeverity } from '@palestra/protocol';
import type { SecretMask } from '@palestra/session';
import type { LogSource, LogStream, NewLogLine } from './hosting-log.sql.ts';
import { SeverityGuess } from './severity.ts';

const QUIET_MS = 1_000;
/** As the port says. */
const MAX_CHARS = 8_192;
// oxlint-disable-next-line no-control-regex -- colours and cursor moves of terminals
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-_])/g;
// oxlint-disable-next-line no-control-regex -- all but the tab
const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f]/g;

/** What a sink needs of the service that stores lines. */
export interface LogStore {
  append(line: NewLogLine): void;
  /** Whether the environment may write a line of this size now. */
  admit(environmentId: string, bytes: number): boolean;
}

/** Takes the log of one deploy or instance: masks secrets, guesses severities, and drops lines of a flood. */
export class LogSink {
  readonly #guesses: Record<LogStream, SeverityGuess>;
  /** Lines that were dropped since the last one that was stored. */
  #dropped = 0;
  /** Until this time all lines are dropped, so that a flood has one note each second. */
  #quietUntil = 0;

  constructor(
    private readonly store: LogStore,
    readonly source: LogSource,
    private readonly mask: SecretMask,
  ) {
    // Programs write progress and their logs to standard error, so only a running instance's is a warning.
    const error = source.versionId === null ? 'info' : 'warning';
    this.#guesses = { stdout: new SeverityGuess('info'), stderr: new SeverityGuess(error), palestra: new SeverityGuess('info') };
  }

  /** Returns whether the line is stored; false in a flood. */
  write({ at, stream, text }: LogLine): boolean {
    const clean = this.clean(text);
    const now = performance.now();
    if (now < this.#quietUntil || !this.store.admit(this.source.environmentId, clean.length)) {
      if (now >= this.#quietUntil) this.#quietUntil = now + QUIET_MS;
      this.#dropped += 1;
      return false;
    }
    this.#reportDropped();
    this.store.append({ ...this.source, at, stream, severity: this.#guesses[stream].of(clean), text: clean });
    return true;
  }

  /** A line as the log shows it: without values of secrets and control characters, and well-formed. */
  clean(text: string): string {
    return this.mask.hide(text.replaceAll(ESCAPES, '').replaceAll(CONTROLS, '')).slice(0, MAX_CHARS).toWellFormed();
  }

  /** A line of this service. */
  note(text: string, severity: LogSeverity = 'info'): void {
    this.#reportDropped();
    this.store.append({ ...this.source, at: new Date(), stream: 'palestra', severity, text: this.clean(text) });
  }

  /** Reports lines that were dropped at the end. */
  end(): void {
    this.#reportDropped();
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return;
    const text = `${this.#dropped} lines were dropped here, because the environment wrote too many at once.`;
    this.#dropped = 0;
    this.store.append({ ...this.source, at: new Date(), stream: 'palestra', severity: 'warning', text });
  }
}
