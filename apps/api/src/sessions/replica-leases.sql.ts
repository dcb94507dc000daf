import type pg from 'pg';
import type { ReplicaLeases } from '@palestra/session';

/** How often this process says that it lives, and after how long a silence it counts as dead. */
const RENEW_MS = 2_000;
const LEASE_MS = 6_000;

const RENEW = `INSERT INTO session_replicas (id, seen_at) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET seen_at = now()`;
const IS_ALIVE = `SELECT 1 FROM session_replicas WHERE id = $1 AND seen_at > now() - $2 * interval '1 ms'`;

/** Leases by the database's clock, so that the clocks of replicas may differ. */
export class SqlReplicaLeases implements ReplicaLeases {
  readonly #pool: pg.Pool;
  readonly #replicaId: string;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: pg.Pool, replicaId: string) {
    this.#pool = pool;
    this.#replicaId = replicaId;
  }

  async start(): Promise<void> {
    await this.#renew();
    await this.#pool.query(`DELETE FROM session_replicas WHERE seen_at < now() - interval '1 day'`);
    // A missed renewal is made up by the next one.
    this.#timer = setInterval(() => void this.#renew().catch(() => {}), RENEW_MS);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#pool.query('DELETE FROM session_replicas WHERE id = $1', [this.#replicaId]);
  }

  async isAlive(replicaId: string): Promise<boolean> {
    return (await this.#pool.query(IS_ALIVE, [replicaId, LEASE_MS])).rowCount === 1;
  }

  async #renew(): Promise<void> {
    await this.#pool.query(RENEW, [this.#replicaId]);
  }
}
