import pg from 'pg';

/**
 * A pool whose connections may break at any moment without ending the process. node-postgres emits `error` on the pool for an idle
 * connection, and on the client between two statements of a transaction. Without a listener that is an uncaught exception. The next
 * statement of that client still rejects.
 */
export function openPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(config);
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}
