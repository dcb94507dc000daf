import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { StringDecoder } from 'node:string_decoder';
import { UsageError } from '../server-settings.ts';

/** Tried in this order unless one is chosen. */
const ENGINES = ['docker', 'podman'];
const ENGINE_VARIABLE = 'PALESTRA_CONTAINER_ENGINE';
const ANSWER_MS = 20_000;
/** How much output of a command is kept. */
const KEPT_CHARS = 1_000_000;
/** The version line of `palestra docker`, which is not a container engine. */
const PALESTRA_DOCKER = /^Client: Palestra$/m;

interface Output {
  stdout: string;
  stderr: string;
}

/** A command ended with a status other than 0. */
export class EngineError extends Error {
  readonly lastLine: string;
  constructor(engine: string, args: readonly string[], { stderr, stdout }: Output, status: number | string | null) {
    const lastLine = lastLineOf(stderr) || lastLineOf(stdout) || `it ended with ${status}`;
    super(`${engine} ${args[0]}: ${lastLine}`);
    this.lastLine = lastLine;
  }
}

export interface EngineOptions {
  /** Aborts the command. */
  signal?: AbortSignal;
  /** Prints the output of the command to stderr as it arrives. */
  progress?: boolean;
}

/** Docker or Podman through its command line, so that the user's settings (contexts, DOCKER_HOST, credentials) apply. */
export class ContainerEngine {
  readonly command: string;

  private constructor(command: string) {
    this.command = command;
  }

  /** The engine of the option, else of PALESTRA_CONTAINER_ENGINE, else the first one that works. Throws `UsageError`. */
  static async find(option: string | undefined, purpose: string): Promise<ContainerEngine> {
    const named = option ?? (process.env[ENGINE_VARIABLE] || undefined);
    const reasons: string[] = [];
    for (const command of named === undefined ? ENGINES : [named]) {
      const reason = await problemOf(command);
      if (reason === null) return new ContainerEngine(command);
      reasons.push(reason);
    }
    const how = `Start Docker or Podman, or choose another engine with --engine or ${ENGINE_VARIABLE}`;
    throw new UsageError(
      `No container engine can ${purpose}: ${reasons.join('; ')}. ${how}. Or run it elsewhere and register its URL: palestra env push --url http://HOST:8000 --name owner/name`,
    );
  }

  /** Throws `EngineError`, or the signal's reason. */
  async run(args: readonly string[], options: EngineOptions = {}): Promise<Output> {
    return runCommand(this.command, args, options);
  }

  /** Stdout of a query command; null if it fails, for example because the object does not exist. */
  async query(args: readonly string[]): Promise<string | null> {
    return this.run(args).then(
      ({ stdout }) => stdout.trim(),
      () => null,
    );
  }
}

/** Why a command is not a usable engine; null if it is one. */
async function problemOf(command: string): Promise<string | null> {
  try {
    const { stdout } = await runCommand(command, ['version'], { signal: AbortSignal.timeout(ANSWER_MS) });
    return PALESTRA_DOCKER.test(stdout) ? `${command} is "palestra docker"` : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return `${command} is not installed`;
    return `${command} does not respond (${error instanceof EngineError ? error.lastLine : (error as Error).message})`;
  }
}

/** Runs a command in a separate process group: Ctrl-C must not end the commands that clean up. */
async function runCommand(command: string, args: readonly string[], { signal, progress }: EngineOptions): Promise<Output> {
  signal?.throwIfAborted();
  const child = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const end = () => child.kill('SIGTERM');
  signal?.addEventListener('abort', end);
  const output: Output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    const decoder = new StringDecoder('utf8');
    child[name].on('data', (data: Buffer) => {
      output[name] = (output[name] + decoder.write(data)).slice(-KEPT_CHARS);
      if (progress) process.stderr.write(data);
    });
  }
  try {
    const [status, killedBy] = (await once(child, 'close')) as [number | null, string | null];
    signal?.throwIfAborted();
    if (status !== 0) throw new EngineError(command, args, output, status ?? killedBy);
    return output;
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

/** The last line, in which Podman and Docker report the error. */
export const lastLineOf = (text: string): string => text.trim().split('\n').at(-1)?.trim() ?? '';
