import { systemClock } from '@palestra/kit';
import pg from 'pg';
import { CHANGES } from '../hosting-events.ts';

/** The one session-level lock of the process that runs instances. */
const LOCK = 1_883_458;
const RETRY_MS = 1_000;
const CONNECT_MS = 5_000;

/**
 * The right to run instances, which one process of all has: a lock of its own database session, which ends with the process. The same
 * connection receives the notifications for whoever holds it.
 */
export class ReconcilerLease {
  readonly #connectionString: string;
  /** It was told that something changed since the last `next`. */
  #isWoken = false;
  #onWake = () => {};

  constructor(connectionString: string) {
    this.#connectionString = connectionString;
  }

  /** Runs `work` while this process has the lease, as often as it gets it. `lost` aborts when the connection breaks or `stop` aborts. */
  async hold(work: (lost: AbortSignal) => Promise<void>, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const client = new pg.Client({ connectionString: this.#connectionString, connectionTimeoutMillis: CONNECT_MS, keepAlive: true });
      const broken = new AbortController();
      client.on('error', () => broken.abort());
      client.on('end', () => broken.abort());
      client.on('notification', () => this.wake());
      try {
        await client.connect();
        if (await this.#acquire(client, AbortSignal.any([stop, broken.signal]))) await work(AbortSignal.any([stop, broken.signal]));
      } catch {
        // PostgreSQL is away: the next connection tries again.
      } finally {
        await client.end().catch(() => {});
      }
      await systemClock.sleep(RETRY_MS, stop).catch(() => {});
    }
  }

  /** Resolves when something changed since the last call, or after `ms`; at once when `signal` aborts. */
  async next(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isWoken && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', end);
          this.#onWake = () => {};
          resolve();
        };
        const timer = setTimeout(end, ms);
        signal.addEventListener('abort', end, { once: true });
        this.#onWake = end;
      });
    }
    this.#isWoken = false;
  }

  /** As a notification of another process. */
  wake(): void {
    this.#isWoken = true;
    this.#onWake();
  }

  async #acquire(client: pg.Client, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const { rows } = await client.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1) AS mine', [LOCK]);
      if (rows[0]!.mine) {
        await client.query(`LISTEN ${CHANGES}`);
        return !signal.aborted;
      }
      await systemClock.sleep(RETRY_MS, signal).catch(() => {});
    }
    return false;
  }
}
