import { type LogLine, MAX_LINE_CHARS } from '../../provider/provider.port.ts';
import { BoundedLog, COMPLAINT } from './bounded-log.ts';

const STEP = /^(?:\[[^\]]+\] )?step (\d+\/\d+) ?: ?(.*)$/i;
/** Stages of an image that other builds pull too: progress only, no information. */
const PROGRESS = new Set([
  'Downloading',
  'Extracting',
  'Waiting',
  'Verifying Checksum',
  'Download complete',
  'Pulling fs layer',
  'Pull complete',
]);

/**
 * Why a build failed. `step`: the instruction of the Dockerfile. `line`: the number of the line of the log that says why. `isKilled`: the kernel
 * killed the program of the step.
 */
export interface BuildFailure {
  message: string;
  step: string | null;
  line: number | null;
  isKilled: boolean;
}

/** What Podman and Docker say of a program that ended by SIGKILL. */
const KILLED = /^container exited on killed$|(?:exit status|non-zero code:) 137\b/;
/** The image of a step that is done. */
const LAYER = /^ ?--?-> (?:Using cache )?([0-9a-f]{10,64})$/;

/**
 * Reads what `POST /build` and `POST /images/create` stream: JSON objects, one a line, of Docker's classic builder or Podman. A build that fails
 * has the status 200: an object with `error` says so.
 */
export class BuildOutput {
  readonly #log: BoundedLog;
  /** A line that has not ended. */
  #rest = '';
  #step: string | null = null;
  /** The last line of the step that looks like an error. */
  #complaint: number | null = null;
  #isKilled = false;
  #failure: BuildFailure | null = null;
  #layer: string | null = null;

  constructor(onLine: (line: LogLine) => void) {
    this.#log = new BoundedLog(onLine);
  }

  /** Null as long as nothing failed. */
  get failure(): BuildFailure | null {
    return this.#failure;
  }

  /** Id of the image of the last step that is done; null before. */
  get layer(): string | null {
    return this.#layer;
  }

  /** One line of the answer. Text that is no JSON becomes a line of the log. */
  push(text: string): void {
    const event = parse(text);
    if (event === null) {
      if (text.trim() !== '') this.#write(`${text}\n`);
      return;
    }
    const { id, stream, status, progressDetail, error, errorDetail } = event;
    if (typeof stream === 'string') this.#write(stream);
    if (typeof status === 'string' && !PROGRESS.has(status) && !isFilled(progressDetail)) {
      this.#endLine();
      this.#write(`${typeof id === 'string' ? `${id}: ` : ''}${status}\n`);
    }
    const message = isObject(errorDetail) && typeof errorDetail['message'] === 'string' ? errorDetail['message'] : error;
    if (typeof message === 'string') this.#fail(message.trim());
  }

  /** Writes what has no line end. */
  end(): void {
    this.#endLine();
    this.#log.end();
  }

  #fail(message: string): void {
    if (this.#failure !== null) return;
    this.#endLine();
    const line = this.#complaint ?? (this.#log.lines || null);
    const isKilled = this.#isKilled || KILLED.test(message);
    for (const text of message.split(/\r?\n/)) this.#log.add({ at: new Date(), stream: 'stderr', text: text.slice(0, MAX_LINE_CHARS) });
    this.#failure = { message, step: this.#step, line: line ?? this.#log.lines, isKilled };
  }

  #endLine(): void {
    if (this.#rest !== '') this.#write('\n');
  }

  #write(text: string): void {
    // A carriage return writes over a line: progress of pip and npm. Each state of it is a line.
    const pieces = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = pieces.pop()!.slice(0, MAX_LINE_CHARS);
    for (const piece of pieces) if (piece !== '') this.#line(piece.slice(0, MAX_LINE_CHARS));
  }

  #line(text: string): void {
    const step = STEP.exec(text);
    if (step) [this.#step, this.#complaint] = [`${step[1]}: ${step[2]}`, null];
    this.#layer = LAYER.exec(text)?.[1] ?? this.#layer;
    this.#isKilled = KILLED.test(text);
    this.#log.add({ at: new Date(), stream: 'stdout', text });
    if (!step && COMPLAINT.test(text)) this.#complaint = this.#log.lines;
  }
}

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;
const isFilled = (value: unknown): boolean => isObject(value) && Object.keys(value).length > 0;

function parse(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
