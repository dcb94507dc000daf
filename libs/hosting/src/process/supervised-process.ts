import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type Clock, systemClock } from '@palestra/kit';
import { LogRing } from './log-ring.ts';

export interface ProcessOptions {
  /** For log messages. */
  name: string;
  command: string;
  /** A function is called at every start, for arguments that can be used once (a socket path). */
  args: string[] | (() => string[]);
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** A process without ready line is killed after this time and started again. */
  readyTimeoutMs?: number;
  /** Time between SIGTERM and SIGKILL. */
  stopGraceMs?: number;
  /** First delay of a restart. Doubles up to `maxBackoffMs`; reset after a minute without failure. */
  minBackoffMs?: number;
  maxBackoffMs?: number;
  clock?: Clock;
  /** Called at every start with the ready line. */
  onReady?(message: ReadyMessage): void;
  /** Called when a ready process has ended; its memory is lost. */
  onLost?(): void;
}

/** The line `{"ready":true,...}` with which a process reports its address. */
export type ReadyMessage = { ready: true } & Record<string, unknown>;

export type ProcessState = 'starting' | 'ready' | 'restarting' | 'stopped';

const GOOD_SERVICE_MS = 60_000;

function readyMessage(line: string): ReadyMessage | null {
  if (!line.startsWith('{')) return null;
  try {
    const message = JSON.parse(line) as Record<string, unknown>;
    return message['ready'] === true ? (message as ReadyMessage) : null;
  } catch {
    return null;
  }
}

/**
 * Keeps a child process running: restarts it with growing delays, stops it gracefully. Its standard input stays open, so that a child that
 * reads it ends with this process even after `kill -9`.
 */
export class SupervisedProcess {
  readonly #options: ProcessOptions;
  readonly #clock: Clock;
  readonly #logs = new LogRing();
  #state: ProcessState = 'stopped';
  #child: ChildProcess | null = null;
  #message: ReadyMessage | null = null;
  #lastExit: string | null = null;
  #running: Promise<void> | null = null;
  #stop = new AbortController();
  #waiting: (() => void)[] = [];

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  get state(): ProcessState {
    return this.#state;
  }

  /** The ready line of the running process; null if none runs. */
  get ready(): ReadyMessage | null {
    return this.#message;
  }

  /** How the last process ended, for messages; null before. */
  get lastExit(): string | null {
    return this.#lastExit;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Its last output, oldest line first. */
  logs(): string[] {
    return this.#logs.lines();
  }

  /** Returns at once; `whenReady` waits. */
  start(): void {
    if (this.#running) return;
    this.#stop = new AbortController();
    this.#state = 'starting';
    this.#running = this.#supervise(this.#stop.signal);
  }

  async whenReady(signal: AbortSignal): Promise<ReadyMessage> {
    while (this.#message === null) {
      if (this.#state === 'stopped') throw new Error(`${this.#options.name} is stopped`);
      signal.throwIfAborted();
      await this.#change(signal);
    }
    return this.#message;
  }

  /** Sends SIGTERM, after a grace period SIGKILL. Resolves when the process has ended for good. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('stopped'));
    await this.#running;
    this.#running = null;
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason as Error);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(() => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
    });
  }

  #enter(state: ProcessState): void {
    this.#state = state;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #supervise(stop: AbortSignal): Promise<void> {
    const { minBackoffMs = 200, maxBackoffMs = 10_000 } = this.#options;
    let backoffMs = minBackoffMs;
    while (!stop.aborted) {
      const startedAt = this.#clock.now();
      await this.#runOnce(stop);
      if (stop.aborted) break;
      if (this.#clock.now() - startedAt > GOOD_SERVICE_MS) backoffMs = minBackoffMs;
      this.#enter('restarting');
      await this.#clock.sleep(backoffMs, stop).catch(() => {});
      backoffMs = Math.min(backoffMs * 2, maxBackoffMs);
    }
    this.#enter('stopped');
  }

  /** Runs the process once; resolves when it has ended. */
  async #runOnce(stop: AbortSignal): Promise<void> {
    const { command, args, cwd, env, readyTimeoutMs = 60_000 } = this.#options;
    const child = spawn(command, typeof args === 'function' ? args() : args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    // Ignores the broken pipe of a child that ended first.
    child.stdin.on('error', () => {});
    createInterface({ input: child.stderr }).on('line', (line) => this.#logs.add(line));
    createInterface({ input: child.stdout }).on('line', (line) => this.#onLine(line));
    const tooLate = this.#clock.after(readyTimeoutMs, () => {
      this.#logs.add(`not ready after ${readyTimeoutMs} ms`);
      child.kill('SIGKILL');
    });
    const onStop = () => this.#terminate(child);
    stop.addEventListener('abort', onStop, { once: true });
    if (stop.aborted) onStop();
    this.#cancelReadyTimer = tooLate;
    this.#lastExit = await ended(child);
    tooLate();
    stop.removeEventListener('abort', onStop);
    this.#logs.add(`${this.#options.name} ${this.#lastExit}`);
    this.#child = null;
    const wasReady = this.#message !== null;
    this.#message = null;
    if (wasReady && !stop.aborted) this.#options.onLost?.();
  }

  #cancelReadyTimer: () => void = () => {};

  #onLine(line: string): void {
    const message = this.#message === null ? readyMessage(line) : null;
    if (message === null) {
      this.#logs.add(line);
      return;
    }
    this.#cancelReadyTimer();
    this.#message = message;
    this.#options.onReady?.(message);
    this.#enter('ready');
  }

  #terminate(child: ChildProcess): void {
    child.stdin?.end();
    child.kill('SIGTERM');
    const cancel = this.#clock.after(this.#options.stopGraceMs ?? 3_000, () => child.kill('SIGKILL'));
    child.once('exit', cancel);
  }
}

/** Waits for the end and returns a description. */
async function ended(child: ChildProcess): Promise<string> {
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    return signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
  } catch (error) {
    return `could not be started: ${(error as Error).message}`;
  }
}
