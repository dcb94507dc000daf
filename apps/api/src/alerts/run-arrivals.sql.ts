import type pg from 'pg';
import { rolloutQuery } from '../rollouts/rollout-query.ts';
import { isFinished } from '../runs/run.sql.ts';
import { newestOfRun } from '../store/run-order.sql.ts';
import type { Pause } from './time-judgements.ts';

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

/** Condition on rollouts `r` of the environment `$2`; null = all. */
const OF_ENVIRONMENT = '($2::text IS NULL OR r.env_id = ANY(ARRAY(SELECT e.id FROM rollout_environments e WHERE e.environment = $2)))';

/**
 * Pauses between the events of a run, or of one of its environments: from the last event of all earlier rollouts to the arrival of the next.
 * Plan as above.
 */
export async function selectPauses(pool: pg.Pool, runSeq: number, environment: string | null): Promise<Pause[]> {
  const { rows } = await limited<Pause>(
    pool,
    `SELECT extract(epoch FROM before)::float8 * 1000 AS "from", extract(epoch FROM received_at)::float8 * 1000 AS "to" FROM (
       SELECT received_at, max(last_at) OVER (ORDER BY received_at, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
       FROM ${newestOfRun('$1', MAX_ARRIVALS)} r WHERE ${OF_ENVIRONMENT}) paused WHERE before < received_at ORDER BY received_at`,
    [runSeq, environment],
  );
  return rows;
}

/** The last event of a run, or of one of its environments, in milliseconds since the epoch; null without any. Plan as above. */
export async function selectLastEvent(
  pool: pg.Pool,
  runSeq: number,
  environment: string | null,
): Promise<{ at: number | null; now: number; finished: boolean }> {
  const { rows } = await limited<{ at: number | null; now: number; finished: boolean }>(
    pool,
    `SELECT (SELECT extract(epoch FROM max(r.last_at))::float8 * 1000 FROM ${newestOfRun('$1', MAX_ARRIVALS)} r WHERE ${OF_ENVIRONMENT}) AS at,
       extract(epoch FROM now())::float8 * 1000 AS now, ${isFinished('u')} AS finished FROM runs u WHERE u.seq = $1`,
    [runSeq, environment],
  );
  return rows[0]!;
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
