import type { StreamCounters, StreamRollout } from '@palestra/protocol';
import { rolloutState } from '@palestra/rollouts';
import type pg from 'pg';
import { newestOfRun } from '../../store/run-order.sql.ts';

/** Plan: runs_seq_key; step_rollups_pkey of all environments together; rollouts_run_seq_idx backwards, at most a thousand rows. */
export async function selectCounters(pool: pg.Pool, runId: string, orgId: string): Promise<StreamCounters | null> {
  const { rows } = await pool.query<StreamCounters>({
    name: 'stream-counters',
    text: `SELECT s.rollouts, s.messages, n.live, n.lag_ms, r.version::text AS v FROM runs r
      CROSS JOIN LATERAL (SELECT COALESCE(sum(rollouts), 0)::int AS rollouts, COALESCE(sum(messages), 0)::float8 AS messages FROM step_rollups WHERE run_seq = r.seq AND env_id = 0) s
      CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE NOT finished AND last_at > now() - interval '10 seconds')::int AS live,
        extract(epoch FROM now() - max(last_at))::float8 * 1000 AS lag_ms
        FROM ${newestOfRun('r.seq', 1000)} newest) n
      WHERE r.id = $1 AND r.org_id = $2 AND r.deleted_at IS NULL`,
    values: [runId, orgId],
  });
  return rows[0] ?? null;
}

/** Steps that were rebuilt after a version, at most `limit`. Plan: step_rollups_pkey of one run, all environments together. */
export async function selectStepsSince(pool: pg.Pool, runId: string, version: string, limit: number): Promise<number[]> {
  const { rows } = await pool.query<{ step: number }>({
    name: 'stream-steps-since',
    text: `SELECT DISTINCT s.step FROM runs r JOIN step_rollups s ON s.run_seq = r.seq AND s.env_id = 0 WHERE r.id = $1 AND s.version > $2::bigint ORDER BY 1 LIMIT $3`,
    values: [runId, version, limit],
  });
  return rows.map(({ step }) => step);
}

/** The rollout that a page shows, from its raw rows, because the derived row can lag behind. */
export interface OpenRollout extends StreamRollout {
  /** null until its start event has arrived. */
  run_id: string | null;
  /** Age of its newest event. */
  age_ms: number;
}

/** Null when it is erased or of another organisation. Plan: rollout_heads_org_id_id_key, runs_seq_key. */
export async function selectOpenRollout(pool: pg.Pool, id: string, orgId: string): Promise<OpenRollout | null> {
  const { rows } = await pool.query<{ id: string; run_id: string | null; messages: number; finished: boolean; age_ms: number }>({
    name: 'stream-rollout',
    text: `SELECT h.id, r.id AS run_id, h.messages, h.finished, extract(epoch FROM now() - h.last_at)::float8 * 1000 AS age_ms
      FROM rollout_heads h LEFT JOIN runs r ON r.seq = h.run_seq WHERE h.org_id = $2 AND h.id = $1 AND r.deleted_at IS NULL`,
    values: [id, orgId],
  });
  const row = rows[0];
  if (!row) return null;
  const state = rolloutState({ messages: row.messages, finished: row.finished, lastEventAgeMs: row.age_ms });
  return { id: row.id, run_id: row.run_id, msgs: row.messages, state, age_ms: row.age_ms };
}
