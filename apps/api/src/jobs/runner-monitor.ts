import pg from 'pg';
import type { Logger } from 'pino';
import { releaseRunners, selectDeadRunners, lockAlive } from './job-queue.sql.ts';

const INTERVAL_MS = 3_000;

/**
 * Finds runners whose process died and releases their jobs, which the library does only after four hours. A runner holds a lock of its
 * database session, which ends with the process. A connection may break for a moment, so a runner counts as dead when it is missing twice
 * in a row.
 */
export class RunnerMonitor {
  #client: pg.Client | null = null;
  #missing = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> = Promise.resolve();
  readonly #runners = new Set<string>();

  constructor(
    private readonly connectionString: string,
    private readonly logger: Logger,
  ) {}

  start(): void {
    this.#timer = setInterval(() => (this.#checking = this.#checking.then(() => this.#check())), INTERVAL_MS);
    this.#timer.unref();
  }

  /** Adds a runner of this process. */
  add(runner: string): void {
    this.#runners.add(runner);
    this.#checking = this.#checking.then(() => this.#lockAlive(runner)).catch(() => {});
  }

  /** Forgets runners of this process, after they ended. */
  forget(runners: readonly string[]): void {
    for (const runner of runners) this.#runners.delete(runner);
    // Their locks end with the session. Another one begins at once, with the locks of the runners that continue.
    this.#checking = this.#checking
      .then(() => this.#client?.end())
      .then(() => (this.#runners.size > 0 ? this.#connected() : undefined))
      .then(
        () => {},
        () => {},
      );
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#checking;
    await this.#client?.end().catch(() => {});
  }

  async #check(): Promise<void> {
    try {
      const client = await this.#connected();
      const missing = await selectDeadRunners(client);
      const dead = missing.filter((runner) => this.#missing.has(runner) && !this.#runners.has(runner));
      this.#missing = new Set(missing);
      if (dead.length === 0) return;
      this.logger.warn({ runners: dead }, 'a process that ran jobs died; its jobs run again');
      await releaseRunners(client, dead);
    } catch (error) {
      this.#missing.clear();
      this.logger.debug({ err: error }, 'the check for dead job runners failed; it is repeated');
    }
  }

  async #lockAlive(runner: string): Promise<void> {
    await lockAlive(await this.#connected(), runner);
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client) return this.#client;
    const client = new pg.Client({ connectionString: this.connectionString, connectionTimeoutMillis: 5_000, keepAlive: true });
    client.on('error', () => {});
    client.on('end', () => {
      if (this.#client === client) this.#client = null;
    });
    await client.connect();
    this.#client = client;
    for (const runner of this.#runners) await lockAlive(client, runner);
    return client;
  }
}
