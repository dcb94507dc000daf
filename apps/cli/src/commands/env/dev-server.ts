import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Target } from '@palestra/hosting';
import { commandOf, type RunOptions } from './run.ts';

/** Editors write several files at once, or a file in several steps. */
const SETTLE_MS = 150;
const READY_TIMEOUT_MS = 120_000;
const STOP_GRACE_MS = 5_000;
/** Folders whose changes are not those of the author. */
const IGNORED = new Set(['node_modules', '.palestra', '.git', '.venv', 'venv', '__pycache__', '.pytest_cache', 'dist']);

/** The process that serves an environment while its author changes it. */
export class DevServer {
  readonly #target: Target;
  readonly #options: RunOptions;
  readonly #say: (text: string) => void;
  #child: ChildProcess | null = null;
  #stopping = false;
  #reloading: Promise<void> = Promise.resolve();

  /** `say` gets one line for each reload and each end of the process, and what the environment prints. */
  constructor(target: Target, options: RunOptions, say: (text: string) => void) {
    this.#target = target;
    this.#options = options;
    this.#say = say;
  }

  /** Resolves when it listens. Rejects with the reason if it cannot start; its output went to the terminal. */
  async start(): Promise<void> {
    const { command, args, cwd, env } = await commandOf(this.#target, this.#options, this.#options.port);
    const isKit = this.#target.kind === 'kit';
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      // A terminal's Ctrl-C is for this process, which then stops the child.
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit', ...(isKit ? (['ipc'] as const) : [])],
    });
    this.#child = child;
    child.stdin!.on('error', () => {});
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`The environment was not ready after ${READY_TIMEOUT_MS / 1_000} s.`)),
        READY_TIMEOUT_MS,
      );
      createInterface({ input: child.stdout! }).on('line', (line) => {
        if (!line.startsWith('{"ready": true') && !line.startsWith('{"ready":true')) return this.#say(line);
        clearTimeout(late);
        resolve();
      });
      child.on('error', reject);
      child.on('exit', (code, signal) => {
        clearTimeout(late);
        if (this.#child === child) this.#child = null;
        const how = signal === null ? `exit status ${code}` : signal;
        reject(new Error(`The environment ended before it was ready (${how}).`));
        if (!this.#stopping) this.#say(`The environment ended (${how}). Save a file to start it again.`);
      });
    }).catch(async (error: unknown) => {
      await this.#end();
      throw error;
    });
  }

  /** Reloads on every change in the folder, until the signal aborts. */
  watch(signal: AbortSignal): void {
    let timer: NodeJS.Timeout | undefined;
    const watcher = watch(this.#target.folder, { recursive: true, signal }, (_, file) => {
      if (file === null || file.split(path.sep).some((part) => IGNORED.has(part)) || file.endsWith('.pyc')) return;
      clearTimeout(timer);
      timer = setTimeout(() => {
        this.#reloading = this.#reloading.then(() => (signal.aborted ? undefined : this.#reload(file)));
      }, SETTLE_MS);
    });
    watcher.on('error', (error) => {
      if (!signal.aborted) this.#say(`Changes are no longer seen: ${error.message}`);
    });
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#reloading.catch(() => {});
    await this.#end();
  }

  async #reload(file: string): Promise<void> {
    try {
      if (this.#child !== null && this.#target.kind === 'kit') {
        const error = await this.#reloadModule(this.#child);
        if (error === null) this.#say(`Reloaded after a change of ${file}. New sessions use it; open ones keep the old code.`);
        else
          this.#say(
            `The environment does not load after a change of ${file}: ${error}\nThe old code stays until you save a version that loads.`,
          );
        return;
      }
      this.#stopping = true;
      await this.#end();
      this.#stopping = false;
      await this.start();
      this.#say(`Restarted after a change of ${file}. Sessions that were open have ended.`);
    } catch (error) {
      this.#stopping = false;
      this.#say(`${(error as Error).message} Save a file to start it again.`);
    }
  }

  async #reloadModule(child: ChildProcess): Promise<string | null> {
    const answered = once(child, 'message') as Promise<[{ reloaded: string | null }]>;
    const ended = once(child, 'exit').then(() => {
      throw new Error('The environment ended while it was loaded.');
    });
    child.send('reload');
    const [{ reloaded }] = await Promise.race([answered, ended]);
    return reloaded;
  }

  async #end(): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS);
    await exited;
    clearTimeout(kill);
    this.#child = null;
  }
}
