import { type ChildProcess, fork } from 'node:child_process';
import { on } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from './config.ts';

const MAIN = new URL('../worker-main.js', import.meta.url);
/** Pauses between restarts: the first, and the longest. */
const PAUSE_MS = { first: 250, longest: 30_000 };
/** A worker that ran for this long was healthy: its next restart waits for the first pause. */
const STEADY_MS = 60_000;
const STOP_MS = 30_000;
const SCRAPE_MS = 1_000;
/** The worker says that it is alive this often ... */
export const ALIVE_MS = 5_000;
/** ... and is killed after this time without a word: one endless computation would stop all jobs. */
const SILENT_MS = 30_000;

export type WorkerRequest = { type: 'start'; config: Config } | { type: 'metrics' } | { type: 'stop' };
export type WorkerResponse = { type: 'alive' } | { type: 'running' } | { type: 'metrics'; text: string };

export interface WorkerStatus {
  state: 'starting' | 'running' | 'stopped';
  /** Since the service started. */
  restarts: number;
  /** How the last one ended; null if none ended. */
  detail: string | null;
}

/**
 * The child process that runs background jobs beside an API process (ADR 15), and its restarts. They share a channel: when it closes, because
 * the API process was killed, the child ends. Its settings come through the channel, so that no secret is on a command line.
 */
export class WorkerProcess {
  #status: WorkerStatus = { state: 'stopped', restarts: 0, detail: null };
  readonly #stopping = new AbortController();
  #supervising: Promise<void> = Promise.resolve();
  #child: ChildProcess | null = null;
  #scrape: Promise<string> | null = null;

  constructor(private readonly logger: Logger) {}

  /** `config`: of the worker. */
  start(config: Config): void {
    this.#supervising = this.#supervise(config);
  }

  status(): WorkerStatus {
    return this.#status;
  }

  /** Metrics of the worker as text; empty while it does not run, or does not answer within a second. */
  metrics(): Promise<string> {
    const child = this.#child;
    if (child === null || this.#status.state !== 'running') return Promise.resolve('');
    return (this.#scrape ??= scrape(child).finally(() => (this.#scrape = null)));
  }

  /** Stops its jobs, and kills it when that takes more than 30 s. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const child = this.#child;
    if (this.#status.state === 'running') child?.send({ type: 'stop' } satisfies WorkerRequest, () => {});
    else child?.kill('SIGKILL');
    const timer = setTimeout(() => child?.kill('SIGKILL'), STOP_MS);
    await this.#supervising;
    clearTimeout(timer);
    this.#status = { ...this.#status, state: 'stopped' };
  }

  async #supervise(config: Config): Promise<void> {
    const { signal } = this.#stopping;
    for (let pauseMs = PAUSE_MS.first; !signal.aborted; pauseMs = Math.min(2 * pauseMs, PAUSE_MS.longest)) {
      const startedAt = performance.now();
      const detail = await this.#runOnce(config);
      if (signal.aborted) return;
      if (performance.now() - startedAt > STEADY_MS) pauseMs = PAUSE_MS.first;
      this.#status = { state: 'starting', restarts: this.#status.restarts + 1, detail };
      this.logger.warn({ detail, pauseMs }, 'the worker ended; it restarts');
      await delay(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Returns how the worker ended. */
  async #runOnce(config: Config): Promise<string> {
    const child = fork(fileURLToPath(MAIN), [], {
      // Without the options of the API process, whose larger heap for new objects would take 40 MB more.
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child = child;
    this.#status = { ...this.#status, state: 'starting' };
    const ended = new Promise<string>((resolve) => {
      child.on('error', (error) => resolve(error.message));
      child.once('exit', (code, signal) => resolve(`ended with ${signal ?? code}`));
    });
    let silent = false;
    const timer = setTimeout(() => {
      silent = true;
      child.kill('SIGKILL');
    }, SILENT_MS);
    child.on('message', ({ type }: WorkerResponse) => {
      timer.refresh();
      if (type === 'running') this.#status = { ...this.#status, state: 'running' };
    });
    child.send({ type: 'start', config } satisfies WorkerRequest, () => {});
    const detail = await ended;
    clearTimeout(timer);
    this.#child = null;
    return silent ? `was killed: it did not answer for ${SILENT_MS / 1000} s` : detail;
  }
}

async function scrape(child: ChildProcess): Promise<string> {
  child.send({ type: 'metrics' } satisfies WorkerRequest, () => {});
  try {
    for await (const [response] of on(child, 'message', { signal: AbortSignal.timeout(SCRAPE_MS) }) as AsyncIterable<[WorkerResponse]>)
      if (response.type === 'metrics') return response.text;
    return '';
  } catch {
    return '';
  }
}
