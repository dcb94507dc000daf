import { type Phase, PHASES } from '@palestra/protocol';
import type pg from 'pg';
import type { GroupClass, StoredFigure } from '../store/figures/step-rollup.ts';
import { newestOfRun } from '../store/run-order.sql.ts';

/** Number of recent steps. As many steps before them are read for comparison. */
export const RECENT_STEPS = 10;

/** A step as the list of runs reads it. */
export interface RecentStep {
  /** -1: all rollouts whose step is not known. */
  step: number;
  rollouts: number;
  scored: number;
  reward_sum: number;
  stops: Record<string, number>;
  group_classes: GroupClass[] | null;
  /** zero_variance, tokens_out, tokens_tool. */
  figures: Record<string, StoredFigure>;
}

/**
 * The newest steps of each run, newest first, the unknown step last: of training if the run has any, else of evaluation. Plan: per run a backward
 * Index Scan using step_rollups_pkey over the rows of all environments together, at most 20 of them; no rollout is read.
 */
export async function selectRecentSteps(pool: pg.Pool, runSeqs: readonly number[]): Promise<Map<number, RecentStep[]>> {
  const { rows } = await pool.query<{ run_seq: number; steps: RecentStep[] | null }>({
    name: 'runs-recent-steps',
    text: `SELECT w.run_seq, (SELECT json_agg(json_build_object('step', s.step, 'rollouts', s.rollouts, 'scored', s.scored, 'reward_sum', s.reward_sum, 'stops', s.figures->'stops',
          'figures', (SELECT jsonb_object_agg(key, value) FROM jsonb_each(s.figures->'canonical')
            WHERE key IN ('zero_variance', 'tokens_out', 'tokens_tool')), 'group_classes', s.figures->'group_classes') ORDER BY s.step DESC)
        FROM (SELECT step, rollouts, scored, reward_sum, figures FROM step_rollups s
          WHERE s.run_seq = w.run_seq AND s.env_id = 0
            AND s.phase = (SELECT min(p.phase) FROM step_rollups p WHERE p.run_seq = w.run_seq AND p.env_id = 0)
          ORDER BY s.step DESC LIMIT $2) s) AS steps
      FROM unnest($1::int[]) AS w(run_seq)`,
    values: [runSeqs, 2 * RECENT_STEPS],
  });
  return new Map(rows.map(({ run_seq, steps }) => [run_seq, steps ?? []]));
}

/**
 * The phases that each run has rollouts of. Plan: per run and phase one probe of step_rollups_pkey, all environments together.
 */
export async function selectPhases(pool: pg.Pool, runSeqs: readonly number[]): Promise<Map<number, Phase[]>> {
  const { rows } = await pool.query<{ run_seq: number; phases: number[] }>({
    name: 'runs-phases',
    text: `SELECT w.run_seq, ARRAY(SELECT c.code FROM unnest($2::int[]) AS c(code)
        WHERE EXISTS (SELECT FROM step_rollups s WHERE s.run_seq = w.run_seq AND s.env_id = 0 AND s.phase = c.code) ORDER BY 1) AS phases
      FROM unnest($1::int[]) AS w(run_seq)`,
    values: [runSeqs, PHASES.map((_, code) => code)],
  });
  return new Map(rows.map(({ run_seq, phases }) => [run_seq, phases.map((code) => PHASES[code]!)]));
}

export interface RunOrigin {
  source: string | null;
  model: string | null;
  /** The agent program, as the uploader names it. */
  agent: string | null;
  /** User and key of the session that the rollout names. */
  user: string | null;
  key: string | null;
}

/**
 * Trainer, model, agent and user of the newest rollout of each run. Plan: per run a backward Index Scan using rollouts_run_seq_idx, one row, then one probe each of
 * rollout_meta_pkey, runs_seq_key, sessions_pkey, users_pkey and api_keys_pkey. With plain joins PostgreSQL read the whole of rollout_meta
 * while its statistics were those of a small table.
 */
export async function selectOrigins(pool: pg.Pool, runSeqs: readonly number[]): Promise<Map<number, RunOrigin>> {
  const { rows } = await pool.query<RunOrigin & { run_seq: number }>({
    name: 'runs-origins',
    text: `SELECT w.run_seq, m.source, m.model, m.author AS agent, u.name AS user, k.name AS key FROM unnest($1::int[]) AS w(run_seq) JOIN runs ON runs.seq = w.run_seq
      JOIN LATERAL ${newestOfRun('w.run_seq', 1)} newest ON true
      JOIN LATERAL (SELECT * FROM rollout_meta WHERE rollout_seq = newest.seq LIMIT 1) m ON true
      LEFT JOIN LATERAL (SELECT * FROM sessions WHERE sid = m.sid AND org_id = runs.org_id::text LIMIT 1) s ON true
      LEFT JOIN users u ON u.id = s.user_id::uuid LEFT JOIN api_keys k ON k.id = s.key_id::uuid`,
    values: [runSeqs],
  });
  return new Map(rows.map(({ run_seq, ...origin }) => [run_seq, origin]));
}
