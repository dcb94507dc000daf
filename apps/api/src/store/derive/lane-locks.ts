import pg from 'pg';
import { Database } from '../../platform/database/database.ts';

/** The first key of the advisory lock of a lane; the second is the lane. An arbitrary number that no other program locks. */
export const LANE_LOCK = 1_819_307_365;

/**
 * Locks of lanes, held by one connection of this process, so that they are free at once when the process dies. They only keep two processes
 * from doing the same work: without them the rows would be the same. A lane of this process cannot be locked a second time.
 */
export class LaneLocks {
  readonly #held = new Set<number>();
  #connection: Promise<pg.Client> | null = null;
  /** The last statement: a connection runs one at a time. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #broken = new WeakSet<pg.Client>();

  constructor(private readonly database: Database) {}

  /** Runs `work` if no process works on the lane. Otherwise returns null. */
  async withLane<T>(lane: number, work: () => Promise<T>): Promise<T | null> {
    if (this.#held.has(lane)) return null;
    this.#held.add(lane);
    try {
      const client = await this.#connected();
      if (!(await this.#query(client, 'derive-lane-lock', 'SELECT pg_try_advisory_lock($1::int, $2::int) AS done', lane))) return null;
      try {
        return await work();
      } finally {
        await this.#query(client, 'derive-lane-unlock', 'SELECT pg_advisory_unlock($1::int, $2::int) AS done', lane).catch(() => {});
      }
    } finally {
      this.#held.delete(lane);
    }
  }

  async close(): Promise<void> {
    const client = await this.#connection?.catch(() => null);
    await client?.end().catch(() => {});
  }

  #connected(): Promise<pg.Client> {
    this.#connection ??= this.#connect().catch((error: unknown) => {
      this.#connection = null;
      throw error;
    });
    return this.#connection;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.database.connectionString,
      connectionTimeoutMillis: 5_000,
      statement_timeout: 30_000,
      query_timeout: 35_000,
      keepAlive: true,
      // PostgreSQL ends it, and frees its lanes, when this process is frozen or its host vanished. Its loops use it every second.
      options: '-c idle_session_timeout=60s',
    });
    client.on('error', () => this.#drop(client));
    await client.connect();
    return client;
  }

  /** A connection that fails is closed, which releases its locks. */
  async #query(client: pg.Client, name: string, text: string, lane: number): Promise<boolean> {
    const answer = this.#last.then(() => client.query<{ done: boolean }>({ name, text, values: [LANE_LOCK, lane] }));
    this.#last = answer.catch(() => this.#drop(client));
    return (await answer).rows[0]!.done;
  }

  #drop(client: pg.Client): void {
    if (this.#broken.has(client)) return;
    this.#broken.add(client);
    this.#connection = null;
    client.end().catch(() => {});
  }
}
