import type pg from 'pg';
import { openPool } from '../../platform/database/pool.ts';

/** One for each kind of statement that runs alone at a time (ledger, sessions, leases), and some for reads. */
const CONNECTIONS = 8;

/**
 * A statement of the session plane takes a tenth of a millisecond, and planning it several times as much. PostgreSQL plans a prepared
 * statement again at every execution while it can see that the arrays of a batch are short; and a plan that is kept from a time when a
 * table was small may read all of it. All of these statements find their rows by an index: told so, PostgreSQL plans each of them once.
 */
const PLAN_ONCE = `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off`;

/** The session plane's own connections. Only for statements whose plan, as their comment says, is a nested loop over indexes. */
export function openSessionPool(connectionString: string): pg.Pool {
  return openPool({
    connectionString,
    max: CONNECTIONS,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 30_000,
    // Waited for before the connection is used.
    onConnect: (client) => client.query(PLAN_ONCE),
  });
}
