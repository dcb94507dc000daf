import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { EventEmitter } from 'node:events';
import pg from 'pg';
import { Database } from '../../platform/database/database.ts';

const RECONNECT_MS = 1_000;
/** The payload of both is the id of an environment. */
const CHANGES = 'palestra_hosting';
const LOGS = 'palestra_hosting_logs';

/** Tells every process, after the commit, that deploys, channels, settings or instances of an environment changed. */
export async function notifyHosting(client: Pick<pg.Pool, 'query'>, environmentId: string): Promise<void> {
  await client.query(`SELECT pg_notify('${CHANGES}', $1)`, [environmentId]);
}

/** Tells every process about new log lines of these environments. */
export async function notifyLogs(client: Pick<pg.Pool, 'query'>, environmentIds: readonly string[]): Promise<void> {
  await client.query(`SELECT pg_notify('${LOGS}', id) FROM unnest($1::text[]) AS n(id)`, [environmentIds]);
}

/** Listens to the notifications of all processes. One may be lost with the connection, so listeners also poll. */
@Injectable()
export class HostingEvents implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #changes = new EventEmitter().setMaxListeners(0);
  readonly #logs = new EventEmitter().setMaxListeners(0);
  #client: pg.Client | null = null;
  #isStopped = false;

  constructor(@Inject(Database) private readonly database: Database) {}

  /** Calls `listener` with the id of every changed environment. Returns a function that unsubscribes. */
  onChange(listener: (environmentId: string) => void): () => void {
    this.#changes.on('change', listener);
    return () => this.#changes.off('change', listener);
  }

  /** Calls `listener` when there are new log lines of the environment. Returns a function that unsubscribes. */
  onLog(environmentId: string, listener: () => void): () => void {
    this.#logs.on(environmentId, listener);
    return () => this.#logs.off(environmentId, listener);
  }

  onApplicationBootstrap(): void {
    void this.#listen();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#isStopped = true;
    await this.#client?.end().catch(() => {});
  }

  async #listen(): Promise<void> {
    while (!this.#isStopped) {
      const client = new pg.Client({ connectionString: this.database.connectionString, connectionTimeoutMillis: 5_000, keepAlive: true });
      const ended = new Promise<void>((resolve) => client.once('end', resolve));
      client.on('error', () => {});
      client.on('notification', ({ channel, payload = '' }) => {
        if (channel === LOGS) this.#logs.emit(payload);
        else this.#changes.emit('change', payload);
      });
      try {
        await client.connect();
        await client.query(`LISTEN ${CHANGES}; LISTEN ${LOGS}`);
        this.#client = client;
        await ended;
      } catch {
        await client.end().catch(() => {});
      }
      this.#client = null;
      if (!this.#isStopped) await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS).unref());
    }
  }
}
