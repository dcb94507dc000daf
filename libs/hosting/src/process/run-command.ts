import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onLines } from './log-lines.ts';

export interface CommandOptions {
  cwd: string;
  /** All variables of the program: nothing is inherited. */
  env: Readonly<Record<string, string>>;
  /** Ends the program and everything that it started. */
  signal: AbortSignal;
  timeoutMs: number;
  onLine?: (text: string, stream: 'stdout' | 'stderr') => void;
  /** Called again and again while the program runs. When it throws, the program is ended, and `runCommand` rejects with its error. */
  watch?: () => Promise<void>;
}

/** `late`: it was ended after `timeoutMs`. */
export type CommandEnd = { kind: 'exit'; code: number } | { kind: 'signal'; signal: string } | { kind: 'late' };

const WATCH_MS = 250;
const PIPES_MS = 2_000;

/**
 * Runs a program in its own process group, without standard input, and resolves when it ended. At the end of the time, on abort and when `watch`
 * throws, it kills the whole group. Rejects with the signal's reason, with the error of `watch`, and with ENOENT if there is no such program.
 */
export async function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<CommandEnd> {
  const { cwd, env, signal, timeoutMs, onLine = () => {}, watch } = options;
  signal.throwIfAborted();
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const ran: { isLate: boolean; failure: { error: unknown } | null; watching: Promise<void> | null } = {
    isLate: false,
    failure: null,
    watching: null,
  };
  const kill = () => killGroup(child.pid);
  const timer = setTimeout(() => {
    ran.isLate = true;
    kill();
  }, timeoutMs);
  const watcher = setInterval(() => {
    ran.watching ??= (watch?.() ?? Promise.resolve())
      .catch((error: unknown) => {
        ran.failure ??= { error };
        kill();
      })
      .finally(() => (ran.watching = null));
  }, WATCH_MS);
  signal.addEventListener('abort', kill, { once: true });
  try {
    onLines(child.stdout, (text) => onLine(text, 'stdout'));
    onLines(child.stderr, (text) => onLine(text, 'stderr'));
    child.once('exit', () => {
      // What the program left in the background holds the pipes open; in a session of its own it also survives this.
      kill();
      setTimeout(() => [child.stdout, child.stderr].forEach((stream) => stream.destroy()), PIPES_MS).unref();
    });
    const [code, cause] = (await once(child, 'close')) as [number | null, string];
    await ran.watching;
    signal.throwIfAborted();
    if (ran.failure !== null) throw ran.failure.error;
    if (ran.isLate) return { kind: 'late' };
    return code === null ? { kind: 'signal', signal: cause } : { kind: 'exit', code };
  } finally {
    clearTimeout(timer);
    clearInterval(watcher);
    signal.removeEventListener('abort', kill);
  }
}

/** Sends a signal to a process group. Does nothing if it has ended. */
export function killGroup(pid: number | undefined, name: NodeJS.Signals = 'SIGKILL'): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
