import type pg from 'pg';
import { inTransaction } from '../../platform/database/transaction.ts';

const NAME = /^rollout_messages_(\d{4})(\d{2})(\d{2})$/;
/** Both functions lock the table for a moment. If the lock is not available, the next run tries again. */
const LOCK_TIMEOUT = '500ms';
/** `lock_not_available`. */
const LOCKED = '55P03';
/** The default partition already has rows of that day, which stay there. */
const CHECK_VIOLATION = '23514';
const DUPLICATE_TABLE = '42P07';

/** Today as `2026-11-21`, by the database's clock in UTC, as ingest sets `day`. */
export async function selectToday(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ today: string }>(`SELECT (now() AT TIME ZONE 'UTC')::date::text AS today`);
  return rows[0]!.today;
}

/** Days that have a partition, oldest first. */
export async function selectPartitions(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'rollout_messages'::regclass ORDER BY 1`,
  );
  return rows.flatMap(({ name }) => {
    const match = NAME.exec(name);
    return match ? `${match[1]}-${match[2]}-${match[3]}` : [];
  });
}

export type PartitionOutcome = 'done' | 'busy' | 'kept';

/** `kept`: the default partition has rows of that day, which stay together there. `busy`: try again later. */
export function createPartition(pool: pg.Pool, day: string): Promise<PartitionOutcome> {
  return withLockTimeout(pool, async (client) => {
    await client.query('SELECT create_message_partition($1::date)', [day]);
    return 'done';
  });
}

/** Drops a day's partition if it is empty. A late event of that day goes to the default partition. */
export function dropEmptyPartition(pool: pg.Pool, day: string): Promise<PartitionOutcome> {
  return withLockTimeout(pool, async (client) => {
    const { rows } = await client.query<{ dropped: boolean }>('SELECT drop_empty_message_partition($1::date) AS dropped', [day]);
    return rows[0]!.dropped ? 'done' : 'kept';
  });
}

async function withLockTimeout(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<PartitionOutcome>): Promise<PartitionOutcome> {
  try {
    return await inTransaction(pool, async (client) => {
      await client.query(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
      return work(client);
    });
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === LOCKED) return 'busy';
    if (code === DUPLICATE_TABLE) return 'done';
    if (code === CHECK_VIOLATION) return 'kept';
    throw error;
  }
}

/** The next date: `2027-01-01` after `2026-12-31`. */
export function dayAfter(day: string, days = 1): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}
