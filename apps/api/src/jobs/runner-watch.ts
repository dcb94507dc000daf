import pg from 'pg';
import type { Logger } from 'pino';
import { releaseRunners, selectDeadRunners, showAlive } from './job-queue.sql.ts';

const LOOK_MS = 3_000;

/**
 * Finds runners whose process is gone and frees their jobs, which the library by itself does after four hours. A runner shows that it
 * lives by a lock of its session: it goes with the process, at once and whatever happened. One whose connection broke for a
 * moment is not taken for dead: it has to be missing twice in a row.
 */
export class RunnerWatch {
  #client: pg.Client | null = null;
  #missing = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  readonly #runners = new Set<string>();

  constructor(
    private readonly connectionString: string,
    private readonly logger: Logger,
  ) {}

  start(): void {
    this.#timer = setInterval(() => (this.#looking = this.#looking.then(() => this.#look())), LOOK_MS);
    this.#timer.unref();
  }

  /** A runner of this process. */
  add(runner: string): void {
    this.#runners.add(runner);
    this.#looking = this.#looking.then(() => this.#show(runner)).catch(() => {});
  }

  /** The runners of this process are over. */
  forget(): void {
    this.#runners.clear();
    // Their locks go with the session; the next look opens another one.
    this.#looking = this.#looking.then(() => this.#client?.end()).catch(() => {});
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
    await this.#client?.end().catch(() => {});
  }

  async #look(): Promise<void> {
    try {
      const client = await this.#connected();
      const missing = await selectDeadRunners(client);
      const dead = missing.filter((runner) => this.#missing.has(runner) && !this.#runners.has(runner));
      this.#missing = new Set(missing);
      if (dead.length === 0) return;
      this.logger.warn({ runners: dead }, 'a process that ran jobs is gone; its jobs are run again');
      await releaseRunners(client, dead);
    } catch (error) {
      this.#missing.clear();
      this.logger.debug({ err: error }, 'runners of jobs were not looked after; they will be');
    }
  }

  async #show(runner: string): Promise<void> {
    await showAlive(await this.#connected(), runner);
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
    for (const runner of this.#runners) await showAlive(client, runner);
    return client;
  }
}
