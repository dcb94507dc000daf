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

  /** Runs a statement that returns one row on the connection of the locks, which PostgreSQL keeps open while this is repeated. */
  async select<T extends pg.QueryResultRow>(name: string, text: string): Promise<T> {
    return this.#query<T>(await this.#connected(), { name, text, values: [] });
  }

  /** Runs `work` if no process works on the lane. Otherwise returns null. */
  async withLane<T>(lane: number, work: () => Promise<T>): Promise<T | null> {
    if (this.#held.has(lane)) return null;
    this.#held.add(lane);
    try {
      const client = await this.#connected();
      if (!(await this.#call(client, 'pg_try_advisory_lock', lane))) return null;
      try {
        return await work();
      } finally {
        await this.#call(client, 'pg_advisory_unlock', lane).catch(() => {});
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
      // PostgreSQL ends it, and frees its lanes, when this process is frozen or its host vanished. Its loops use it every second, also during a long batch.
      options: '-c idle_session_timeout=60s -c enable_seqscan=off -c jit=off',
    });
    client.on('error', () => this.#drop(client));
    await client.connect();
    return client;
  }

  async #call(client: pg.Client, name: 'pg_try_advisory_lock' | 'pg_advisory_unlock', lane: number): Promise<boolean> {
    const statement = { name, text: `SELECT ${name}($1::int, $2::int) AS done`, values: [LANE_LOCK, lane] };
    return (await this.#query<{ done: boolean }>(client, statement)).done;
  }

  /** Returns the first row. A connection that fails is closed, which releases its locks. */
  async #query<T extends pg.QueryResultRow>(client: pg.Client, statement: pg.QueryConfig): Promise<T> {
    const answer = this.#last.then(() => client.query<T>(statement));
    this.#last = answer.catch(() => this.#drop(client));
    return (await answer).rows[0]!;
  }

  #drop(client: pg.Client): void {
    if (this.#broken.has(client)) return;
    this.#broken.add(client);
    this.#connection = null;
    client.end().catch(() => {});
  }
}
