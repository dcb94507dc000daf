import type { Readable } from 'node:stream';
import tar from 'tar-stream';
import { type Engine, isStatus, wasCut } from '../docker/engine/engine.ts';
import { removeContainer } from '../docker/instance/containers.ts';
import { exec } from '../docker/sandbox/exec.ts';

export interface Command {
  /** A program and its arguments. */
  program: readonly string[];
  /** Null: that of the image. */
  user?: string | null;
  variables?: Readonly<Record<string, string>>;
  timeoutMs: number;
  /** Of its output; default 64 KiB. */
  maxBytes?: number;
}

export interface CommandEnd {
  /** Null: it was killed, because its time was over. */
  code: number | null;
  output: string;
}

/** A path in the container as the engine sees it, without the programs of the container. */
export type PathKind = 'none' | 'folder' | 'other';

const MAX_OUTPUT_BYTES = 65_536;
const TRANSFER_MS = 300_000;
const REMOVE_MS = 60_000;

/** A container of a task's image, in which agents and tests run programs. */
export class TaskContainer {
  readonly #engine: Engine;
  readonly #name: string;
  readonly #onRemove: () => Promise<void>;

  /** `onRemove`: removes what belongs to it. */
  constructor(engine: Engine, name: string, onRemove: () => Promise<void>) {
    this.#engine = engine;
    this.#name = name;
    this.#onRemove = onRemove;
  }

  /** Runs a program until it ends. What it leaves in the background goes on, unless its time is over. */
  async run({ program, user, variables, timeoutMs, maxBytes = MAX_OUTPUT_BYTES }: Command, signal: AbortSignal): Promise<CommandEnd> {
    const request = { command: program, timeoutMs, maxBytes, ...(variables && { variables }), ...(user != null && { user }) };
    const { exitCode, output, timedOut, truncated } = await exec(this.#engine, this.#name, request, signal);
    const text = output.toString();
    return { code: timedOut ? null : exitCode, output: truncated ? `${text}\n[only the first ${maxBytes} bytes]\n` : text };
  }

  /** Unpacks a tar stream at `/`, as root. `pack` makes it, once more if the engine closed the connection too early. */
  async upload(pack: () => Readable, signal: AbortSignal): Promise<void> {
    try {
      await this.#upload(pack(), signal);
    } catch (error) {
      if (!wasCut(error)) throw error;
      await this.#upload(pack(), signal);
    }
  }

  async #upload(archive: Readable, signal: AbortSignal): Promise<void> {
    const failed = new Promise<never>((_resolve, reject) => archive.once('error', reject));
    const query = { path: '/', noOverwriteDirNonDir: 1 };
    const sent = this.#engine.request({ method: 'PUT', path: this.#path('/archive'), query, archive, deadlineMs: TRANSFER_MS }, signal);
    try {
      await Promise.race([sent, failed]);
    } finally {
      sent.catch(() => {});
      failed.catch(() => {});
      archive.destroy();
    }
  }

  /** The bytes of a file; null if there is none, or if it is no file, or a link. Throws for one that is larger than `maxBytes`. */
  async readFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null> {
    if ((await this.kindOf(path, signal)) !== 'other') return null;
    const archive = await this.#engine.stream({ method: 'GET', path: this.#path('/archive'), query: { path } }, signal);
    const extract = archive.pipe(tar.extract());
    archive.on('error', (error) => extract.destroy(error));
    try {
      for await (const entry of extract) {
        const { type, size } = entry.header;
        if (type !== 'file') return null;
        if (size > maxBytes) throw new Error(`${path} has ${size} bytes; at most ${maxBytes} are read.`);
        const chunks: Buffer[] = [];
        for await (const chunk of entry) chunks.push(chunk as Buffer);
        return Buffer.concat(chunks);
      }
      return null;
    } finally {
      archive.destroy();
    }
  }

  async kindOf(path: string, signal: AbortSignal): Promise<PathKind> {
    try {
      const stream = await this.#engine.stream({ method: 'GET', path: this.#path('/archive'), query: { path } }, signal);
      const header = (stream as Readable & { headers?: Record<string, string> }).headers?.['x-docker-container-path-stat'] ?? '';
      stream.destroy();
      const { mode = 0 } = JSON.parse(Buffer.from(header, 'base64').toString() || '{}') as { mode?: number };
      // The highest bit of Go's file mode is that of folders.
      return mode >= 2 ** 31 ? 'folder' : 'other';
    } catch (error) {
      if (isStatus(error, 404)) return 'none';
      throw error;
    }
  }

  /** Paths that are not as in the image. */
  async changedPaths(signal: AbortSignal): Promise<Set<string>> {
    const found = await this.#engine.request<{ Path: string }[] | null>({ method: 'GET', path: this.#path('/changes') }, signal);
    return new Set((found ?? []).map(({ Path }) => Path));
  }

  /** Ends every process; the files stay. */
  async restart(signal: AbortSignal): Promise<void> {
    await this.#engine.request({ method: 'POST', path: this.#path('/restart'), query: { t: 0 }, deadlineMs: REMOVE_MS }, signal);
  }

  async remove(): Promise<void> {
    await removeContainer(this.#engine, this.#name, AbortSignal.timeout(REMOVE_MS)).finally(this.#onRemove);
  }

  #path(action: string): string {
    return `/containers/${this.#name}${action}`;
  }
}
