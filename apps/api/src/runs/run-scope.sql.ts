import type pg from 'pg';
import { PalestraError } from '@palestra/protocol';
import { newestOfRun } from '../store/run-order.sql.ts';
import { isFinished } from './run.sql.ts';

export interface RunState {
  seq: number;
  id: string;
  name: string;
  /** Version of its figures; increases. */
  version: string;
  settings: Record<string, unknown>;
  inference: Record<string, unknown> | null;
  retention_days: number | null;
  created_at: Date;
  updated_at: Date;
  finished: boolean;
  /** Time of the newest event in its figures; null without events. */
  as_of: Date | null;
}

/** Throws `run_not_found`. Plan: runs_seq_key; rollouts_run_seq_idx backwards, at most 100 rows: older rollouts rarely get new events. */
export async function selectRunState(pool: pg.Pool, seq: number): Promise<RunState> {
  const { rows } = await pool.query<RunState>({
    name: 'run-state',
    text: `SELECT r.seq, r.id, r.name, r.version::text, r.settings, r.inference, r.retention_days, r.created_at, r.updated_at, ${isFinished('r')} AS finished,
        (SELECT max(last_at) FROM ${newestOfRun('r.seq', 100)} newest) AS as_of
      FROM runs r WHERE r.seq = $1`,
    values: [seq],
  });
  if (!rows[0]) throw new PalestraError('run_not_found');
  return rows[0];
}
