import type pg from 'pg';

/** Changes of a watched session: small rows, by which the few calls to read completely are chosen. */

export interface WatchedCall {
  taskId: string;
  seq: number;
  running: boolean;
  /** It began so long ago that no earlier call can still appear in the table. */
  settled: boolean;
}

export interface SessionGlance {
  version: number;
  /** It ended, and the calls before its end are in the table. */
  ended: boolean;
  /** It ended so long ago that all late results are stored. */
  quiet: boolean;
  calls: WatchedCall[];
}

/** How much later a call can appear than another call with a higher number, which began at the same time on another process. */
const SETTLE = `interval '5 s'`;
/**
 * How long after the end of its session a call can appear, because rows of calls that no client can resume are written in batches
 * (deferred-calls.ts). Shorter than the pause between two glances.
 */
const LAST_CALLS = `interval '400 ms'`;
export const GLANCE_LIMIT = 2_000;

/** Index Scan using sessions_pkey. */
const SESSION = `SELECT version, coalesce(ended_at < now() - ${LAST_CALLS}, false) AS ended, coalesce(ended_at < now() - ${SETTLE}, false) AS quiet
  FROM sessions WHERE sid = $1`;
/** BitmapOr of session_calls_sid_seq_idx beyond `$2` and of session_calls_pkey for the running ones. */
const CALLS = `
  SELECT task_id, seq, state = 'running' AS running, started_at < now() - ${SETTLE} AS settled
  FROM session_calls WHERE (sid = $1 AND seq > $2) OR (task_id = ANY($3::text[]) AND sid = $1) ORDER BY seq LIMIT ${GLANCE_LIMIT}`;

/** The session without its calls; null when it is no longer stored. */
export async function glanceAtSession(pool: pg.Pool, sid: string): Promise<Omit<SessionGlance, 'calls'> | null> {
  const { rows } = await pool.query<Omit<SessionGlance, 'calls'>>({ name: 'session_glance', text: SESSION, values: [sid] });
  return rows[0] ?? null;
}

/** The session, and its calls after `floor` or among `running`; null when it is no longer stored. */
export async function glance(pool: pg.Pool, sid: string, floor: number, running: string[]): Promise<SessionGlance | null> {
  const session = await glanceAtSession(pool, sid);
  if (session === null) return null;
  const calls = await pool.query<{ task_id: string; seq: string; running: boolean; settled: boolean }>({
    name: 'session_glance_calls',
    text: CALLS,
    values: [sid, floor, running],
  });
  return {
    ...session,
    calls: calls.rows.map((row) => ({ taskId: row.task_id, seq: Number(row.seq), running: row.running, settled: row.settled })),
  };
}

/** The position before the first running call, or after the last call if none runs. Plan: Index Scan using session_calls_sid_seq_idx. */
const NOW = `SELECT coalesce(min(seq) FILTER (WHERE state = 'running') - 1, max(seq), 0) AS floor FROM session_calls WHERE sid = $1`;

export async function floorOfNow(pool: pg.Pool, sid: string): Promise<number> {
  const { rows } = await pool.query<{ floor: string }>(NOW, [sid]);
  return Number(rows[0]!.floor);
}
