import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { EventEmitter } from 'node:events';
import pg from 'pg';
import type { Logger } from 'pino';
import { Database } from '../platform/database.ts';
import { LOGGER } from '../platform/tokens.ts';
import { settleTurns } from '../rollouts/rollout.sql.ts';
import { touchRuns } from './run.sql.ts';

const FLUSH_MS = 1_000;
const RECONNECT_MS = 1_000;
const SETTLE_BATCH = 500;

/** A run that something arrived in. */
export interface RunTouched {
  id: string;
  org: string;
}

/**
 * News about runs, merged to one a second per run, told to every replica by LISTEN/NOTIFY. Also counts the turns of rollouts
 * that fell quiet. Nothing here is needed for correctness: a lost notification only makes a page refresh later.
 */
@Injectable()
export class RunActivity implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #touched = new Set<string>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  #timer: NodeJS.Timeout | undefined;
  #listener: pg.Client | null = null;
  #stopped = false;
  #flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  touch(runIds: string[]): void {
    for (const id of runIds) this.#touched.add(id);
  }

  /** Calls `listener` for every touched run of the organisation; the returned function ends it. */
  subscribe(orgId: string, listener: (run: RunTouched) => void): () => void {
    this.#events.on(orgId, listener);
    return () => this.#events.off(orgId, listener);
  }

  onApplicationBootstrap(): void {
    this.#timer = setInterval(() => (this.#flushing = this.#flush()), FLUSH_MS);
    void this.#listen();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#flushing;
    await this.#flush();
    await this.#listener?.end().catch(() => {});
  }

  async #flush(): Promise<void> {
    const ids = [...this.#touched];
    this.#touched.clear();
    try {
      if (ids.length > 0) await touchRuns(this.database.pool, ids);
      if (!this.#stopped) await settleTurns(this.database.pool, SETTLE_BATCH);
    } catch (error) {
      this.touch(ids);
      this.logger.debug({ err: error }, 'run activity was not written; it will be');
    }
  }

  async #listen(): Promise<void> {
    while (!this.#stopped) {
      const client = new pg.Client({ connectionString: this.database.connectionString, connectionTimeoutMillis: 5_000 });
      const ended = new Promise<void>((resolve) => client.once('end', resolve));
      client.on('error', () => {});
      client.on('notification', ({ payload }) => this.#tell(payload));
      try {
        await client.connect();
        await client.query('LISTEN palestra_runs');
        this.#listener = client;
        await ended;
      } catch {
        await client.end().catch(() => {});
      }
      this.#listener = null;
      if (!this.#stopped) await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS).unref());
    }
  }

  #tell(payload: string | undefined): void {
    const run = JSON.parse(payload ?? 'null') as RunTouched | null;
    if (run) this.#events.emit(run.org, run);
  }
}
