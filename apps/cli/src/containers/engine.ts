import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { StringDecoder } from 'node:string_decoder';
import { UsageError } from '../server-settings.ts';

/** In this order, unless one is named. */
const ENGINES = ['docker', 'podman'];
const ENGINE_VARIABLE = 'PALESTRA_CONTAINER_ENGINE';
const ANSWER_MS = 20_000;
/** Of the output of one command. */
const KEPT_CHARS = 1_000_000;
/** How `palestra docker`, which stands in for Docker, calls itself. */
const STAND_IN = /^Client: Palestra$/m;

export interface Said {
  stdout: string;
  stderr: string;
}

/** A command ended with another status than 0. */
export class EngineError extends Error {
  readonly lastLine: string;
  constructor(engine: string, args: readonly string[], { stderr, stdout }: Said, status: number | string | null) {
    const lastLine = lastLineOf(stderr) || lastLineOf(stdout) || `it ended with ${status}`;
    super(`${engine} ${args[0]}: ${lastLine}`);
    this.lastLine = lastLine;
  }
}

export interface EngineOptions {
  /** Ends the command. */
  signal?: AbortSignal;
  /** Prints the command's progress to our stderr as it comes. */
  progress?: boolean;
}

/** Docker or Podman, by its command line: a client's settings (contexts, DOCKER_HOST, credentials) hold here as they do for the user. */
export class ContainerEngine {
  readonly command: string;

  private constructor(command: string) {
    this.command = command;
  }

  /** The engine that is named, by the option or else by PALESTRA_CONTAINER_ENGINE; without either the first that answers. Throws `UsageError`. */
  static async find(wanted: string | undefined, purpose: string): Promise<ContainerEngine> {
    const named = wanted ?? (process.env[ENGINE_VARIABLE] || undefined);
    const reasons: string[] = [];
    for (const command of named === undefined ? ENGINES : [named]) {
      const reason = await whyNot(command);
      if (reason === null) return new ContainerEngine(command);
      reasons.push(reason);
    }
    const how = `Start Docker or Podman, or name another one with --engine or ${ENGINE_VARIABLE}`;
    throw new UsageError(
      `${purpose}, and no container engine does so: ${reasons.join('; ')}. ${how}; or run it elsewhere and push its address: palestra env push --url http://HOST:8000 --name owner/name`,
    );
  }

  /** Throws `EngineError`, or the signal's reason. */
  async run(args: readonly string[], options: EngineOptions = {}): Promise<Said> {
    return runCommand(this.command, args, options);
  }

  /** Stdout of a command that answers a question; null when it fails, as for what is not there. */
  async ask(args: readonly string[]): Promise<string | null> {
    return this.run(args).then(
      ({ stdout }) => stdout.trim(),
      () => null,
    );
  }
}

async function whyNot(command: string): Promise<string | null> {
  try {
    const { stdout } = await runCommand(command, ['version'], { signal: AbortSignal.timeout(ANSWER_MS) });
    return STAND_IN.test(stdout) ? `${command} is the stand-in of "palestra docker"` : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return `${command} is not installed`;
    return `${command} does not answer (${error instanceof EngineError ? error.lastLine : (error as Error).message})`;
  }
}

/** In a process group of its own: Ctrl-C in a terminal is for us, who then tidy up by means of such commands. */
async function runCommand(command: string, args: readonly string[], { signal, progress }: EngineOptions): Promise<Said> {
  signal?.throwIfAborted();
  const child = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const end = () => child.kill('SIGTERM');
  signal?.addEventListener('abort', end);
  const said: Said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    const decoder = new StringDecoder('utf8');
    child[name].on('data', (data: Buffer) => {
      said[name] = (said[name] + decoder.write(data)).slice(-KEPT_CHARS);
      if (progress) process.stderr.write(data);
    });
  }
  try {
    const [status, killedBy] = (await once(child, 'close')) as [number | null, string | null];
    signal?.throwIfAborted();
    if (status !== 0) throw new EngineError(command, args, said, status ?? killedBy);
    return said;
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

/** Podman and Docker say what is wrong last. */
export const lastLineOf = (text: string): string => text.trim().split('\n').at(-1)?.trim() ?? '';
