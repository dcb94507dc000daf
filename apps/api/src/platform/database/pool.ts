import pg from 'pg';

/**
 * A pool whose connections may break at any moment, as when PostgreSQL restarts, without ending the process. node-postgres emits what
 * broke one that is idle on the pool, and one that is held between two statements of a transaction on the client: an `error` event
 * nobody listens to is an uncaught exception. Nothing is hidden: the next statement of that client is rejected.
 */
export function openPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(config);
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}
