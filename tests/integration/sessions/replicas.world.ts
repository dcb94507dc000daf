import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, onTestFinished } from 'vitest';
import { InProcessBackend } from '../../../libs/session/src/in-process.fixture.ts';
import { createDatabase } from '../../support/server.ts';
import { type Replica, startReplica } from './sessions.world.ts';
import { openPool } from '../../../apps/api/src/platform/database/pool.ts';

type Row = Record<string, unknown>;
type Options = Parameters<typeof startReplica>[2];

/** For a spec file: a database of its own, emptied before each test, and any number of API processes on it that end with their test. */
export function useReplicas() {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let sql: pg.Pool;

  beforeAll(async () => {
    database = await createDatabase();
    sql = openPool({ connectionString: database.url, max: 2 });
  });
  afterAll(async () => {
    await sql.end();
    await database.drop();
  });
  beforeEach(async () => {
    await sql.query('TRUNCATE sessions, session_calls, session_replicas');
  });

  async function start(options: Options, backend = new InProcessBackend()): Promise<Replica & { backend: InProcessBackend }> {
    const replica = await startReplica(database.url, backend, options);
    let over = false;
    const ending = (end: () => Promise<void>) => async () => {
      if (over) return;
      over = true;
      await end();
    };
    const close = ending(replica.close);
    onTestFinished(close);
    return { ...replica, kill: ending(replica.kill), close, backend };
  }

  const query = (text: string, values: unknown[] = []) => sql.query(text, values);
  const stored = async (sid: string) => (await query('SELECT * FROM sessions WHERE sid = $1', [sid])).rows[0] as Row;
  /** A connection with an open transaction, which ends with the test. */
  async function transaction(): Promise<pg.PoolClient> {
    const client = await sql.connect();
    onTestFinished(() => client.release(true));
    await client.query('BEGIN');
    return client;
  }
  return { start, stored, query, transaction, pool: () => sql };
}
