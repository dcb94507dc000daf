import type pg from 'pg';
import type { StoredFigure } from '../rollouts/derive/rollup.figures.ts';

/** Steps that "recent" means, and as many before them to compare with. */
export const RECENT_STEPS = 10;

/** What the list of runs reads of a step. */
export interface RecentStep {
  rollouts: number;
  scored: number;
  reward_sum: number;
  stops: Record<string, number>;
  /** pass@k, zero_variance, tokens_out, tokens_tool. */
  figures: Record<string, StoredFigure>;
}

/**
 * The newest steps of each run, training where there is any, the newest first. Plan: per run a backward Index Scan using step_rollups_pkey
 * over the rows of all environments together, at most 20 of them; rollouts are not read.
 */
export async function selectRecentSteps(pool: pg.Pool, runSeqs: readonly number[]): Promise<Map<number, RecentStep[]>> {
  const { rows } = await pool.query<{ run_seq: number; steps: RecentStep[] | null }>({
    name: 'runs-recent-steps',
    text: `SELECT w.run_seq, (SELECT json_agg(json_build_object('rollouts', s.rollouts, 'scored', s.scored, 'reward_sum', s.reward_sum, 'stops', s.figures->'stops',
          'figures', (SELECT jsonb_object_agg(key, value) FROM jsonb_each(s.figures->'canonical')
            WHERE key LIKE 'pass@%' OR key IN ('zero_variance', 'tokens_out', 'tokens_tool'))) ORDER BY s.step DESC)
        FROM (SELECT step, rollouts, scored, reward_sum, figures FROM step_rollups s
          WHERE s.run_seq = w.run_seq AND s.env_id = 0 AND s.step >= 0
            AND s.phase = (SELECT min(p.phase) FROM step_rollups p WHERE p.run_seq = w.run_seq AND p.env_id = 0)
          ORDER BY s.step DESC LIMIT $2) s) AS steps
      FROM unnest($1::int[]) AS w(run_seq)`,
    values: [runSeqs, 2 * RECENT_STEPS],
  });
  return new Map(rows.map(({ run_seq, steps }) => [run_seq, steps ?? []]));
}
