import type pg from 'pg';
import { type Clock, SingleFlight, systemClock } from '@palestra/kit';
import type { ReplicaLeases } from '@palestra/session';
import { retryDatabase } from '../../platform/database/database-retry.ts';

/** How often a process renews its lease, and after how long without a renewal it counts as dead. */
const RENEW_MS = 1_000;
export const LEASE_MS = 3_000;
/** A renewal that is not answered for so long is begun again, over another connection: this one may be dead. */
const RENEW_DEADLINE_MS = 10_000;
/** How long addresses and lease states are cached, so that forwarded requests cost no query. */
const CACHE_MS = 500;
const PROBE_DEADLINE_MS = 2_000;
/** How long a process that answers may be late with the renewal of its lease, for example on a busy machine. */
const LATE_LEASE_MS = 30_000;
const POLL_MS = 200;
/** How long the row of a dead process is kept, to show when it was last seen. */
const KEEP_DEAD = `interval '1 day'`;

const RENEW = `WITH renewed AS (
    INSERT INTO session_replicas (id, address, seen_at, draining) VALUES ($1, $2, now(), $3)
    ON CONFLICT (id) DO UPDATE SET address = EXCLUDED.address, seen_at = now(), draining = EXCLUDED.draining)
  SELECT EXISTS (SELECT 1 FROM session_replicas WHERE id <> $1 AND seen_at > now() - $4 * interval '1 ms') AS siblings`;
const FIND = `SELECT address, extract(epoch from seen_at) * 1000 AS seen_at, seen_at > now() - $2 * interval '1 ms' AS alive,
  seen_at > now() - ${LATE_LEASE_MS} * interval '1 ms' AS late FROM session_replicas WHERE id = $1`;

interface Row {
  address: string;
  seen_at: string;
  alive: boolean;
  /** The lease may have ended, but only recently. */
  late: boolean;
}

export interface LeaseOptions {
  pool: pg.Pool;
  replicaId: string;
  /** Runs a commit that waits for the disk. The call ledger needs to know of it. */
  confirm: (commit: () => Promise<void>) => Promise<void>;
  clock?: Clock;
}

/** Leases use the database's clock, so the clocks of replicas may differ. */
export class SqlReplicaLeases implements ReplicaLeases {
  readonly #options: LeaseOptions;
  readonly #clock: Clock;
  readonly #cache = new Map<string, { row: Row | null; at: number }>();
  readonly #lookups = new SingleFlight<Row | null>();
  #address = '';
  #draining = false;
  #alone = false;
  /** When we last renewed our lease, and when we last renewed it so late that it had ended. */
  #renewedAt = 0;
  #renewedLateAt = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The renewal that the timer began and that has not ended. */
  #renewing: Promise<void> | null = null;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  async start(): Promise<void> {
    await this.#renew();
    await this.#options.pool.query(`DELETE FROM session_replicas WHERE seen_at < now() - ${KEEP_DEAD}`);
    this.#timer = setInterval(() => {
      // The next renewal makes up for a failed one. None is added to one that waits for PostgreSQL.
      this.#renewing ??= this.#renew()
        .catch(() => {})
        .finally(() => (this.#renewing = null));
    }, RENEW_MS);
    this.#timer.unref();
  }

  /** Stores the address at which other processes reach this one. If PostgreSQL is unavailable, the next renewal stores it. */
  async announce(address: string): Promise<void> {
    this.#address = address;
    await this.#renew().catch(() => {});
  }

  /** Announces that this process will end. */
  async drain(): Promise<void> {
    this.#draining = true;
    await this.#renew();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing;
    await this.#options.pool.query('DELETE FROM session_replicas WHERE id = $1', [this.#options.replicaId]);
  }

  /** Whether another process can take over sessions. */
  async hasSiblings(): Promise<boolean> {
    const others = `SELECT 1 FROM session_replicas WHERE id <> $1 AND NOT draining AND seen_at > now() - $2 * interval '1 ms' LIMIT 1`;
    return (await this.#options.pool.query(others, [this.#options.replicaId, LEASE_MS])).rows.length > 0;
  }

  alone(): boolean {
    return this.#alone;
  }

  async isAlive(replicaId: string): Promise<boolean> {
    return replicaId === this.#options.replicaId || (await this.#find(replicaId))?.alive === true;
  }

  async locate(replicaId: string): Promise<string | null> {
    const known = this.#cache.get(replicaId);
    const row = known && this.#clock.now() - known.at < CACHE_MS ? known.row : await this.#find(replicaId);
    return row?.alive ? row.address : null;
  }

  async confirm(replicaId: string): Promise<{ alive: true } | { alive: false; lastSeenAt: number | null }> {
    for (;;) {
      const row = await this.#find(replicaId);
      if (row === null) return { alive: false, lastSeenAt: null };
      if (!row.alive) return { alive: false, lastSeenAt: Number(row.seen_at) };
      if (replicaId === this.#options.replicaId || (await answersAs(row.address, replicaId, 'stored'))) return { alive: true };
      await this.#clock.sleep(POLL_MS);
    }
  }

  #find(replicaId: string): Promise<Row | null> {
    return this.#lookups.do(replicaId, async () => {
      const find = { name: 'replica_find', text: FIND, values: [replicaId, LEASE_MS] };
      const { rows } = await retryDatabase(() => this.#options.pool.query<Row>(find));
      const row = rows[0] ?? null;
      if (row !== null && !row.alive && (row.late || this.#mayHaveLostDatabase()))
        row.alive = await answersAs(row.address, replicaId, 'alive');
      this.#cache.set(replicaId, { row, at: this.#clock.now() });
      return row;
    });
  }

  /**
   * A process that recently could not renew its own lease must not trust the leases of others: PostgreSQL may have been unavailable for them,
   * too, and after a crash of PostgreSQL they first rewrite lost rows, then renew.
   */
  #mayHaveLostDatabase(): boolean {
    const now = this.#clock.now();
    return now - this.#renewedAt > LEASE_MS || now - this.#renewedLateAt < LATE_LEASE_MS;
  }

  #renew(): Promise<void> {
    const { pool, replicaId, confirm } = this.#options;
    return confirm(async () => {
      const values = [replicaId, this.#address, this.#draining, LEASE_MS];
      // `query_timeout` is missing in the types of a query.
      const renewal = { text: RENEW, values, query_timeout: RENEW_DEADLINE_MS };
      const { rows } = await pool.query<{ siblings: boolean }>(renewal);
      this.#alone = rows[0]?.siblings === false;
      const now = this.#clock.now();
      if (this.#renewedAt !== 0 && now - this.#renewedAt > LEASE_MS) this.#renewedLateAt = now;
      this.#renewedAt = now;
    });
  }
}

/**
 * The path at which a process returns its id to other replicas. With `?ask=alive` it answers at once, also when PostgreSQL is unavailable.
 * Otherwise it answers when everything that it had noticed before is stored. Older versions ignore the parameter and always store first.
 */
export const REPLICA_PATH = '/internal/replica';

async function answersAs(address: string, replicaId: string, ask: 'alive' | 'stored'): Promise<boolean> {
  const url = address + REPLICA_PATH + (ask === 'alive' ? '?ask=alive' : '');
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(PROBE_DEADLINE_MS), redirect: 'error' });
    return answer.ok && ((await answer.json()) as { id?: unknown }).id === replicaId;
  } catch {
    return false;
  }
}
