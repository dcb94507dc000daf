import type pg from 'pg';
import type { ArrivalWindow } from './arrival-windows.ts';
import type { StepKey } from './dirty-steps.sql.ts';

/** A row of `step_rollups`. */
export interface StepRollup extends StepSums {
  /** Of a step that is not known. */
  windows: StepWindows | null;
}

export interface StepSums extends StepKey {
  /** 0 = all together. */
  env_id: number;
  rollouts: number;
  scored: number;
  errors: number;
  finished: number;
  messages: number;
  reward_sum: number;
  /** Packed: the weakest of its rollouts in each field. */
  provenance: number;
  figures: object;
}

/** The rollups of a step that is not known, by arrival window. */
export interface StepWindows {
  width_ms: number;
  windows: (ArrivalWindow & Omit<StepSums, keyof StepKey | 'env_id'>)[];
}

/** A row of `rollout_groups`. */
export interface StepGroup {
  group_key: string;
  env_id: number;
  task_id: number | null;
  n: number;
  n_expected: number | null;
  scored: number;
  errors: number;
  successes: number;
  sum: number;
  sum_squares: number;
  min: number | null;
  max: number | null;
}

const GROUP_VALUES = ['env_id', 'task_id', 'n', 'n_expected', 'scored', 'errors', 'successes', 'sum', 'sum_squares', 'min', 'max'];
const valuesOf = (table: string) => GROUP_VALUES.map((name) => `${table}.${name}`).join(', ');

/** Rollups and groups replace the stored ones of the step; groups that are stored alike are not written. Plan: primary keys, rollout_groups_step_idx. */
const WRITE = `
WITH rollup AS MATERIALIZED (SELECT * FROM json_to_recordset($5::json) AS r(env_id int, rollouts int, scored int, errors int, finished int, messages bigint,
  reward_sum float8, provenance int, figures jsonb, windows jsonb)),
fresh AS MATERIALIZED (SELECT * FROM json_to_recordset($6::json) AS g(group_key bigint, env_id int, task_id int, n int, n_expected int, scored int, errors int,
  successes int, sum float8, sum_squares float8, min float8, max float8)),
gone AS (DELETE FROM step_rollups WHERE run_seq = $1 AND phase = $2 AND step = $3 AND env_id NOT IN (SELECT env_id FROM rollup)),
ungrouped AS (DELETE FROM rollout_groups WHERE run_seq = $1 AND phase = $2 AND step = $3 AND group_key NOT IN (SELECT group_key FROM fresh)),
grouped AS (
  INSERT INTO rollout_groups (run_seq, phase, step, group_key, ${GROUP_VALUES.join(', ')})
  SELECT $1, $2, $3, f.group_key, ${valuesOf('f')} FROM fresh f
  WHERE NOT EXISTS (SELECT FROM rollout_groups g WHERE g.run_seq = $1 AND g.group_key = f.group_key AND g.phase = $2 AND g.step = $3
    AND (${valuesOf('g')}) IS NOT DISTINCT FROM (${valuesOf('f')}))
  ON CONFLICT (run_seq, group_key, phase, step) DO UPDATE SET ${GROUP_VALUES.map((name) => `${name} = excluded.${name}`).join(', ')})
INSERT INTO step_rollups (run_seq, phase, step, version, env_id, rollouts, scored, errors, finished, messages, reward_sum, provenance, figures, windows)
SELECT $1, $2, $3, $4::bigint, env_id, rollouts, scored, errors, finished, messages, reward_sum, provenance, figures, windows FROM rollup
ON CONFLICT (run_seq, env_id, phase, step) DO UPDATE SET rollouts = excluded.rollouts, scored = excluded.scored, errors = excluded.errors,
  finished = excluded.finished, messages = excluded.messages, reward_sum = excluded.reward_sum, provenance = excluded.provenance,
  version = excluded.version, figures = excluded.figures, windows = excluded.windows`;

/** `version`: of the run's figures. */
export async function writeStepRollups(
  client: Pick<pg.Pool, 'query'>,
  { run_seq, phase, step }: StepKey,
  version: string,
  { rollups, groups }: { rollups: readonly StepRollup[]; groups: readonly StepGroup[] },
): Promise<void> {
  await client.query({
    name: 'figures-write-step',
    text: WRITE,
    values: [run_seq, phase, step, version, JSON.stringify(rollups), JSON.stringify(groups)],
  });
}
