import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

/** The built command line of Palestra. */
export const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');

const CLOSE_MS = 5_000;

/** A command that serves until it is told to end. */
export interface Foreground {
  child: ChildProcess;
  output(): string;
  /** The first match of what it prints. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
  /** As Ctrl-C, or another signal; its exit status. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

/** `palestra ARGS...` in a folder, with variables beside our own. */
export function foreground(args: string[], { cwd, env }: { cwd: string; env: Record<string, string> }): Foreground {
  const child = spawn(process.execPath, [CLI, ...args], { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr.on('data', (data: Buffer) => (output += data.toString()));
  return {
    child,
    output: () => output,
    async said(pattern) {
      for (const deadline = Date.now() + 240_000; Date.now() < deadline;) {
        const found = pattern.exec(output);
        if (found !== null) return found;
        if (child.exitCode !== null) break;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error(`never said ${pattern}:\n${output}`);
    },
    async end(signal = 'SIGINT') {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const [exited, closed] = [once(child, 'exit'), once(child, 'close')];
      child.kill(signal);
      const [code] = (await exited) as [number | null];
      // What it printed last comes after its end. A process that it left behind may hold its output open.
      await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref())]);
      return code;
    },
  };
}
