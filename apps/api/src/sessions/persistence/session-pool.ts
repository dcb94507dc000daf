import type pg from 'pg';
import { openPool } from '../../platform/database/pool.ts';

/** One for each kind of statement that runs one at a time (ledger, sessions, leases), and some for reads. */
const CONNECTIONS = 8;

/**
 * A statement of a session takes 0.1 ms, and its planning takes several times as long. PostgreSQL plans a prepared statement at every execution
 * while the arrays of its batches are short, and a plan from a time when a table was small may read the whole table. All these statements find
 * their rows by an index. With these settings PostgreSQL plans each of them once, that way.
 */
const PLAN_ONCE = `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off`;

/** The connections of the session server. Use them only for statements whose plan is a nested loop over indexes. */
export function openSessionPool(connectionString: string): pg.Pool {
  return openPool({
    connectionString,
    max: CONNECTIONS,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 30_000,
    // The pool waits for this before it uses the connection.
    onConnect: (client) => client.query(PLAN_ONCE),
  });
}
