import type pg from 'pg';

export interface SessionCount {
  /** `owner/name`; empty while no environment is pinned. */
  environment: string;
  state: string;
  sessions: number;
  /** How many of them wait for a slot. */
  waiting: number;
}

/** All live sessions of the service. Plan: HashAggregate over an Index Scan using sessions_live_idx, which has only live sessions. */
export async function countLiveSessions(pool: pg.Pool): Promise<SessionCount[]> {
  const { rows } = await pool.query<SessionCount>({
    name: 'session_counts',
    text: `SELECT COALESCE(environment, '') AS environment, state, count(*)::int AS sessions, count(waiting_on)::int AS waiting
           FROM sessions WHERE ended_at IS NULL GROUP BY 1, 2`,
  });
  return rows;
}
