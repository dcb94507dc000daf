import { type LogLine, MAX_LINE_CHARS } from '../../provider/provider.port.ts';
import { type BuildStatus, decodeBuildStatus } from './buildkit-status.ts';

/** Of a log; what follows is not kept, except the lines before a failure. */
const MOST_LINES = 50_000;
const LAST_LINES = 100;
const STEP = /^(?:\[[^\]]+\] )?step (\d+\/\d+) ?: ?(.*)$/i;
const COMPLAINT = /(?:error|exception)\b|\b(?:fatal|failed|failure|denied|not found|no such|cannot|traceback)\b/i;
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

/** Why a build failed. `step`: the instruction of the Dockerfile. `line`: the number of the line of the log that says why. */
export interface BuildFailure {
  message: string;
  step: string | null;
  line: number | null;
}

/** Text of one origin: a step of BuildKit, or the whole log of the other builders. */
interface Origin {
  step: string | null;
  rest: string;
  lastLine: number | null;
  /** The last line that looks like an error. */
  complaint: number | null;
}

const newOrigin = (step: string | null): Origin => ({ step, rest: '', lastLine: null, complaint: null });

/**
 * Reads what `POST /build` and `POST /images/create` stream: JSON objects, one a line, of Docker's classic builder, BuildKit or Podman. A build
 * that fails has the status 200: an object with `error` says so.
 */
export class BuildOutput {
  readonly #onLine: (line: LogLine) => void;
  readonly #log = newOrigin(null);
  readonly #vertexes = new Map<string, Origin>();
  readonly #announced = new Set<string>();
  #dropped: LogLine[] = [];
  #lines = 0;
  #failure: BuildFailure | null = null;
  #image: string | null = null;

  constructor(onLine: (line: LogLine) => void) {
    this.#onLine = onLine;
  }

  /** Null as long as nothing failed. */
  get failure(): BuildFailure | null {
    return this.#failure;
  }

  /** Id of the image that was built; null before, and for builders that do not say it. */
  get image(): string | null {
    return this.#image;
  }

  /** One line of the answer. Text that is no JSON becomes a line of the log. */
  push(text: string): void {
    const event = parse(text);
    if (event === null) {
      if (text.trim() !== '') this.#write(this.#log, 'stdout', `${text}\n`);
      return;
    }
    const { id, aux, stream, status, progressDetail, error, errorDetail } = event;
    if (id === 'moby.buildkit.trace' && typeof aux === 'string') this.#buildKit(aux);
    else if (isObject(aux) && typeof aux['ID'] === 'string') this.#image = aux['ID'];
    if (typeof stream === 'string') this.#write(this.#log, 'stdout', stream);
    if (typeof status === 'string' && !PROGRESS.has(status) && !isFilled(progressDetail)) {
      if (this.#log.rest !== '') this.#write(this.#log, 'stdout', '\n');
      this.#write(this.#log, 'stdout', `${typeof id === 'string' ? `${id}: ` : ''}${status}\n`);
    }
    const message = isObject(errorDetail) && typeof errorDetail['message'] === 'string' ? errorDetail['message'] : error;
    if (typeof message === 'string') this.#fail(message);
  }

  /** Writes what has no line end. */
  end(): void {
    for (const origin of [this.#log, ...this.#vertexes.values()]) if (origin.rest !== '') this.#write(origin, 'stdout', '\n');
    for (const line of this.#dropped) this.#onLine(line);
    this.#dropped = [];
  }

  #buildKit(encoded: string): void {
    let status: BuildStatus;
    try {
      status = decodeBuildStatus(Buffer.from(encoded, 'base64'));
    } catch {
      // A newer builder: its error still comes as text.
      return;
    }
    for (const { digest, name, started, cached, error } of status.vertexes) {
      const origin = this.#vertexes.get(digest) ?? newOrigin(name);
      this.#vertexes.set(digest, origin);
      // Steps of the builder itself have no instruction.
      if (started && !this.#announced.has(digest) && !name.startsWith('[internal]')) {
        this.#announced.add(digest);
        this.#write(origin, 'stdout', `${cached ? 'CACHED ' : ''}${name}\n`);
      }
      if (error && this.#failure === null) this.#failAt(origin, error);
    }
    for (const { vertex, stream, text } of status.logs) {
      const origin = this.#vertexes.get(vertex) ?? newOrigin(null);
      this.#vertexes.set(vertex, origin);
      this.#write(origin, stream, text);
    }
  }

  #fail(message: string): void {
    if (this.#failure === null) this.#failAt(this.#log, message);
  }

  #failAt(origin: Origin, message: string): void {
    if (origin.rest !== '') this.#write(origin, 'stdout', '\n');
    const line = origin.complaint ?? origin.lastLine;
    this.#failure = { message: message.trim(), step: origin.step, line };
    this.#write(newOrigin(null), 'stderr', `${message.trim()}\n`);
    this.#failure.line ??= this.#lines;
  }

  #write(origin: Origin, stream: LogLine['stream'], text: string): void {
    // A carriage return writes over a line: progress of pip and npm. Each state of it is a line.
    const pieces = (origin.rest + text).split(/\r\n|\n|\r/);
    origin.rest = pieces.pop()!.slice(0, MAX_LINE_CHARS);
    for (const piece of pieces) if (piece !== '') this.#line(origin, stream, piece.slice(0, MAX_LINE_CHARS));
  }

  #line(origin: Origin, stream: LogLine['stream'], text: string): void {
    const step = STEP.exec(text);
    if (step) Object.assign(origin, { step: `${step[1]}: ${step[2]}`, complaint: null });
    this.#emit({ at: new Date(), stream, text });
    origin.lastLine = this.#lines;
    if (!step && COMPLAINT.test(text)) origin.complaint = this.#lines;
  }

  #emit(line: LogLine): void {
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
