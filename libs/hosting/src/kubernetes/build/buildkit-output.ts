import { BoundedLog, COMPLAINT } from '../../docker/build/bounded-log.ts';
import type { BuildFailure } from '../../docker/build/build-output.ts';
import type { LogLine } from '../../provider/provider.port.ts';

/** `#7 text`: a line of the seventh part of a build. */
const PART = /^#(\d{1,6}) (.*)$/;
/** `[2/4] RUN ...`, or `[stage 2/4] RUN ...`: a part that is an instruction of the Dockerfile. */
const STEP = /^\[(?:[^\]]* )?(\d+\/\d+)\] (.+)$/;
/** `0.512 text`: what its program wrote, and when. */
const WRITTEN = /^\d+\.\d+ (.*)$/;
/** `sha256:0123... 1.05MB / 3.10MB 0.2s`: how much of a layer has come. */
const PROGRESS = /^(?:extracting )?sha256:[0-9a-f]{64}(?: |$)/;
/** Without a cache, or without room for it, a build goes on. */
const CACHE = /^(?:importing cache manifest|exporting cache)/;
const KILLED = /exit code: 137\b|signal: killed/;
const FAILED = /^error: (?:failed to solve: )?(.+)$/;
/** The script of the image gives up, and then prints the log of BuildKit, in which the first of such lines says why it ended. */
const NOT_STARTED = /^could not connect to unix:\S+ after \d+ trials$/;
const WHY_NOT = /^(?:buildkitd: |\[rootlesskit:\w+ *\] error: )(.+)$/;

interface Part {
  name: string;
  step: string | null;
  /** Number of the last line that looks like an error. */
  complaint: number | null;
}

/** Reads what `buildctl build --progress=plain` writes. */
export class BuildKitOutput {
  readonly #log: BoundedLog;
  readonly #parts = new Map<string, Part>();
  #failed: Part | null = null;
  #message: string | null = null;
  #line: number | null = null;
  #isUnstarted = false;

  constructor(onLine: (line: LogLine) => void) {
    this.#log = new BoundedLog(onLine);
  }

  /** Why it failed, as far as it said so. */
  get failure(): BuildFailure {
    const message = this.#message ?? 'The builder ended without an error. See the last lines of its log.';
    return { message, step: this.#failed?.step ?? null, line: this.#line, isKilled: KILLED.test(message) };
  }

  /** One line of the log. */
  push({ at, text }: LogLine): void {
    const [, id, rest] = PART.exec(text) ?? [];
    if (id !== undefined && rest !== undefined) this.#part(id, rest, { at, stream: 'stdout', text });
    else if (text.trim() !== '') this.#outside({ at, stream: 'stdout', text });
  }

  /** Writes the last lines of a log that was too long. */
  end(): void {
    this.#log.end();
  }

  #part(id: string, text: string, line: LogLine): void {
    let part = this.#parts.get(id);
    if (part === undefined) {
      part = { name: text, step: stepOf(text), complaint: null };
      this.#parts.set(id, part);
    }
    const error = /^ERROR: (.+)$/.exec(text)?.[1];
    const isCache = CACHE.test(part.name);
    if (PROGRESS.test(text) || (isCache && error !== undefined)) return;
    this.#log.add(error === undefined ? line : { ...line, stream: 'stderr' });
    const written = WRITTEN.exec(text)?.[1];
    if (written !== undefined && COMPLAINT.test(written)) part.complaint = this.#log.lines;
    if (error === undefined) return;
    [this.#failed, this.#message, this.#line] = [part, error, part.complaint ?? this.#log.lines];
  }

  /** After its parts a build repeats what failed, and says why in its last line. */
  #outside(line: LogLine): void {
    this.#isUnstarted ||= NOT_STARTED.test(line.text);
    const error = this.#isUnstarted ? this.#whyNot(line.text) : FAILED.exec(line.text)?.[1];
    this.#log.add(error === undefined ? line : { ...line, stream: 'stderr' });
    if (error === undefined) return;
    this.#message = error;
    this.#line ??= this.#log.lines;
  }

  #whyNot(text: string): string | undefined {
    const why = this.#message === null ? WHY_NOT.exec(text)?.[1] : undefined;
    return why && `BuildKit did not start (${why}). The operator lets the nodes of builds make user namespaces: see docs/hosting.md.`;
  }
}

function stepOf(text: string): string | null {
  const [, number, instruction] = STEP.exec(text) ?? [];
  return number === undefined ? null : `${number}: ${instruction}`;
}
