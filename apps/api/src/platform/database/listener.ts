import { systemClock } from '@palestra/kit';
import pg from 'pg';

const RECONNECT_MS = 1_000;
const CONNECT_MS = 5_000;

/** Receives the notifications of some channels on its own connection, which it opens again when it breaks. Notifications meanwhile are lost. */
export class DatabaseListener {
  readonly #connectionString: string;
  readonly #channels: readonly string[];
  readonly #onNotification: (payload: string, channel: string) => void;
  readonly #stopping = new AbortController();
  #client: pg.Client | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(connectionString: string, channels: readonly string[], onNotification: (payload: string, channel: string) => void) {
    this.#connectionString = connectionString;
    this.#channels = channels;
    this.#onNotification = onNotification;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#client?.end().catch(() => {});
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const client = new pg.Client({ connectionString: this.#connectionString, connectionTimeoutMillis: CONNECT_MS, keepAlive: true });
      const ended = new Promise<void>((resolve) => client.once('end', resolve));
      client.on('error', () => {});
      client.on('notification', ({ payload, channel }) => this.#onNotification(payload ?? '', channel));
      this.#client = client;
      try {
        await client.connect();
        await client.query(this.#channels.map((channel) => `LISTEN ${channel}`).join(';'));
        if (signal.aborted) await client.end();
        await ended;
      } catch {
        await client.end().catch(() => {});
      }
      if (!signal.aborted) await systemClock.sleep(RECONNECT_MS, signal).catch(() => {});
    }
  }
}
