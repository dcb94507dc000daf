import { EventEmitter, once } from 'node:events';
import pRetry from 'p-retry';
import { causeIn, type PostgresServer } from './postgres-server.ts';

/** A server that ran for this long was healthy: its next restart has no delay. */
const STEADY_MS = 60_000;
const BACKOFF = { retries: Number.POSITIVE_INFINITY, minTimeout: 250, factor: 2, maxTimeout: 5_000 };
/** A smart shutdown waits until all connections end, which those of a running service never do. After this time we stop the server. */
const SMART_SHUTDOWN_MS = 5_000;
const LOG_ENTRIES = 200;

export interface PostgresStatus {
  state: 'running' | 'restarting' | 'stopped';
  /** Why it does not run; null while it does. */
  fault: 'disk_full' | 'ended' | null;
  /** Its last line before it ended, or why it did not start again; null while it runs. */
  detail: string | null;
  /** Restarts since the service started. */
  restarts: number;
}

export interface SupervisorOptions {
  /** Aborts when the service begins to stop. It still needs its database then, although the operator may stop both. */
  draining: AbortSignal;
  /** Called when the server ended, or did not start again. */
  onEnd: (status: PostgresStatus) => void;
}

/** The recent lines of the server's log. */
export class PostgresLog {
  readonly #entries: string[] = [];
  readonly #events = new EventEmitter();

  add(text: string): void {
    this.#entries.push(text);
    if (this.#entries.length > LOG_ENTRIES) this.#entries.shift();
    if (text.includes('received smart shutdown request')) this.#events.emit('smartShutdown');
  }

  clear(): void {
    this.#entries.length = 0;
  }

  has(pattern: RegExp): boolean {
    return pattern.test(this.#entries.join(''));
  }

  lastLine(): string | null {
    return this.#entries.join('').trim().split('\n').at(-1) || null;
  }

  /** Of a start. A running server also logs fatal errors of connections. */
  cause(): string | null {
    return causeIn(this.#entries.join(''));
  }

  async smartShutdown(signal: AbortSignal): Promise<void> {
    await once(this.#events, 'smartShutdown', { signal });
  }
}

/**
 * Restarts a PostgreSQL on the same port whenever it ends, with growing delays until it stays up. Meanwhile clients see refused connections
 * and reconnect.
 */
export class PostgresSupervisor {
  #status: PostgresStatus = { state: 'running', fault: null, detail: null, restarts: 0 };
  readonly #stopping = new AbortController();
  #supervising: Promise<void> = Promise.resolve();

  constructor(
    private readonly server: PostgresServer,
    private readonly log: PostgresLog,
    private readonly options: SupervisorOptions,
  ) {}

  status(): PostgresStatus {
    return this.#status;
  }

  /** Supervises a server that runs already. */
  start(): void {
    this.#supervising = this.#supervise();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.server.stop();
    await this.#supervising;
    this.#status = { ...this.#status, state: 'stopped' };
  }

  async #supervise(): Promise<void> {
    const { signal } = this.#stopping;
    await this.#untilItEnds();
    if (!signal.aborted) this.#noteEnd(this.log.lastLine());
    while (!signal.aborted) await pRetry(() => this.#runOnce(), { ...BACKOFF, signal }).catch(() => {});
  }

  /** Rejects when the server did not start, or did not run for long. */
  async #runOnce(): Promise<void> {
    try {
      await this.server.start({ signal: this.#stopping.signal });
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#noteEnd(this.log.cause());
      throw error;
    }
    const startedAt = performance.now();
    this.#status = { state: 'running', fault: null, detail: null, restarts: this.#status.restarts + 1 };
    await this.#untilItEnds();
    if (this.#stopping.signal.aborted) return;
    this.#noteEnd(this.log.lastLine());
    if (performance.now() - startedAt < STEADY_MS) throw new Error('postgres ended again');
  }

  async #untilItEnds(): Promise<void> {
    const over = new AbortController();
    void this.#hastenSmartShutdown(AbortSignal.any([over.signal, this.options.draining])).catch(() => {});
    await this.server.ended();
    over.abort();
  }

  async #hastenSmartShutdown(signal: AbortSignal): Promise<void> {
    await this.log.smartShutdown(signal);
    const timer = setTimeout(() => !signal.aborted && void this.server.stop(), SMART_SHUTDOWN_MS);
    timer.unref();
  }

  /** `cause`: null if it wrote nothing to its log; the cause of the attempt before is kept then. */
  #noteEnd(cause: string | null): void {
    const fault = this.log.has(/No space left on device/) ? 'disk_full' : 'ended';
    this.#status = { ...this.#status, state: 'restarting', ...(cause !== null && { fault, detail: cause }) };
    this.log.clear();
    this.options.onEnd(this.#status);
  }
}
