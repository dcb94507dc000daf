import type pg from 'pg';
import { rolloutQuery } from '../rollouts/rollout-query.ts';
import { newestOfRun } from '../store/run-order.sql.ts';

/** Rollouts of a run that one count or preview reads: the newest ones. */
export const MAX_ARRIVALS = 20_000;
/** A query that takes longer is not counted. */
const TIMEOUT_MS = 2_000;

/**
 * How many of the newest rollouts of a run match a query and arrived in the last `minutes`. Plan: rollouts_run_seq_idx backwards, bounded.
 * Rejects with PostgreSQL's `query_canceled` after two seconds.
 */
export async function countRecent(pool: pg.Pool, runSeq: number, q: string, minutes: number): Promise<number> {
  const { where } = await rolloutQuery(pool, q, [runSeq], 3);
  const { rows } = await limited<{ count: number }>(
    pool,
    `SELECT count(*)::int AS count FROM ${newestOfRun('$1', MAX_ARRIVALS)} r WHERE r.received_at > now() - $2::int * interval '1 minute' AND (${where.sql})`,
    [runSeq, minutes, ...where.values],
  );
  return rows[0]!.count;
}

/** Arrivals of the newest rollouts of a run that match a query, ascending, in milliseconds since the epoch. Plan and errors as above. */
export async function selectArrivals(pool: pg.Pool, runSeq: number, q: string): Promise<number[]> {
  const { where } = await rolloutQuery(pool, q, [runSeq], 2);
  const { rows } = await limited<{ at: number }>(
    pool,
    `SELECT extract(epoch FROM r.received_at)::float8 * 1000 AS at FROM ${newestOfRun('$1', MAX_ARRIVALS)} r WHERE ${where.sql} ORDER BY 1`,
    [runSeq, ...where.values],
  );
  return rows.map(({ at }) => at);
}

/** Pauses between the events of a run: from the last event of all earlier rollouts to the arrival of the next. Plan as above. */
export async function selectPauses(pool: pg.Pool, runSeq: number): Promise<{ from: number; to: number }[]> {
  const { rows } = await limited<{ from: number; to: number }>(
    pool,
    `SELECT extract(epoch FROM before)::float8 * 1000 AS "from", extract(epoch FROM received_at)::float8 * 1000 AS "to" FROM (
       SELECT received_at, max(last_at) OVER (ORDER BY received_at, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
       FROM ${newestOfRun('$1', MAX_ARRIVALS)} r) paused WHERE before < received_at ORDER BY received_at`,
    [runSeq],
  );
  return rows;
}

async function limited<Row extends pg.QueryResultRow>(pool: pg.Pool, text: string, values: unknown[]): Promise<pg.QueryResult<Row>> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query(`SET LOCAL statement_timeout = ${TIMEOUT_MS}`);
    return await client.query<Row>(text, values);
  } finally {
    // The transaction only reads.
    await client.query('ROLLBACK').catch(() => {});
    client.release();
  }
}
