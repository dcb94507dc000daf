import type pg from 'pg';
import { openPool } from '../platform/database/pool.ts';

type OnConnect = (error: Error | undefined, client: pg.PoolClient | undefined, release: (error?: Error | boolean) => void) => void;

/**
 * A pool for the library of jobs. When a connection breaks while a runner stops, the library releases its listening connection twice
 * (graphile-worker 0.17.3, `release` in main.js), in a promise without a handler, whose rejection would end the process. The second
 * release does nothing here.
 */
export function openJobPool(config: pg.PoolConfig): pg.Pool {
  const pool = openPool(config);
  const connect = pool.connect.bind(pool) as { (): Promise<pg.PoolClient>; (onConnect: OnConnect): void };
  const connectOnce = (onConnect?: OnConnect) => {
    if (onConnect === undefined) return connect();
    return connect((error, client, release) => {
      let isReleased = false;
      onConnect(error, client, (reason) => {
        if (!isReleased) release(reason);
        isReleased = true;
      });
    });
  };
  pool.connect = connectOnce as typeof pool.connect;
  return pool;
}
