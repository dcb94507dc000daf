import type pg from 'pg';

export interface RunCounters {
  rollouts: number;
  messages: number;
  /** Rollouts that something came for in the last ten seconds and that have not ended; among the newest thousand. */
  live: number;
  /** Since the newest event that is in the figures; null without any. */
  lag_ms: number | null;
  v: string;
}

/** Plan: runs_seq_key; step_rollups_pkey of all environments together; rollouts_run_seq_idx backwards, at most a thousand rows. */
export async function selectCounters(pool: pg.Pool, runId: string, orgId: string): Promise<RunCounters | null> {
  const { rows } = await pool.query<RunCounters>({
    name: 'stream-counters',
    text: `SELECT s.rollouts, s.messages, n.live, n.lag_ms, r.version::text AS v FROM runs r
      CROSS JOIN LATERAL (SELECT COALESCE(sum(rollouts), 0)::int AS rollouts, COALESCE(sum(messages), 0)::float8 AS messages FROM step_rollups WHERE run_seq = r.seq AND env_id = 0) s
      CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE NOT finished AND last_at > now() - interval '10 seconds')::int AS live,
        extract(epoch FROM now() - max(last_at))::float8 * 1000 AS lag_ms
        FROM (SELECT finished, last_at FROM rollouts WHERE run_seq = r.seq ORDER BY seq DESC LIMIT 1000) newest) n
      WHERE r.id = $1 AND r.org_id = $2 AND r.deleted_at IS NULL`,
    values: [runId, orgId],
  });
  return rows[0] ?? null;
}

/** Steps that were made again after a version, `limit` of them at most. Plan: step_rollups_pkey of one run, all environments together. */
export async function selectStepsSince(pool: pg.Pool, runId: string, version: string, limit: number): Promise<number[]> {
  const { rows } = await pool.query<{ step: number }>({
    name: 'stream-steps-since',
    text: `SELECT DISTINCT s.step FROM runs r JOIN step_rollups s ON s.run_seq = r.seq AND s.env_id = 0 WHERE r.id = $1 AND s.version > $2::bigint ORDER BY 1 LIMIT $3`,
    values: [runId, version, limit],
  });
  return rows.map(({ step }) => step);
}
