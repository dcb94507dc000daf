import type { SuccessRule } from '@palestra/metrics';
import type pg from 'pg';
import type { StepKey } from './dirty-steps.sql.ts';

/** Whether all rewards of an environment of a run lie in [0, 1], which decides the default success rule (docs/reference/metrics.md#success). */
export interface RewardScale {
  run_seq: number;
  env_id: number;
  unit_rewards: boolean;
}

type RunEnvironmentKey = Pick<RewardScale, 'run_seq' | 'env_id'>;
type Client = Pick<pg.Pool, 'query'>;

/** `pinned`: the threshold of the run's owner. */
export function successRule(pinned: number | undefined, unitRewards: boolean | undefined): SuccessRule {
  if (pinned !== undefined) return { threshold: pinned, strict: false };
  return unitRewards === false ? { threshold: 0, strict: true } : { threshold: 1, strict: false };
}

/** The success rules of these runs, as they are stored. */
export async function selectSuccessRules(
  client: Client,
  runSeqs: readonly number[],
): Promise<(runSeq: number, envId: number) => SuccessRule> {
  const pinned = await selectPinnedThresholds(client, runSeqs);
  const scales = new Map((await selectRewardScales(client, runSeqs)).map((scale) => [keyOf(scale), scale.unit_rewards]));
  return (run_seq, env_id) => successRule(pinned.get(run_seq), scales.get(keyOf({ run_seq, env_id })));
}

const keyOf = ({ run_seq, env_id }: RunEnvironmentKey): string => `${run_seq}:${env_id}`;

/** Plan: primary key. */
async function selectRewardScales(client: Client, runSeqs: readonly number[]): Promise<RewardScale[]> {
  const { rows } = await client.query<RewardScale>(
    'SELECT run_seq, env_id, unit_rewards FROM run_environments WHERE run_seq = ANY($1::int[])',
    [runSeqs],
  );
  return rows;
}

/** Thresholds that owners pinned, by run. Plan: runs_seq_key. */
async function selectPinnedThresholds(client: Client, runSeqs: readonly number[]): Promise<Map<number, number>> {
  const { rows } = await client.query<{ seq: number; threshold: number }>(
    `SELECT seq, (settings->>'successThreshold')::float8 AS threshold FROM runs WHERE seq = ANY($1::int[]) AND jsonb_typeof(settings->'successThreshold') = 'number'`,
    [runSeqs],
  );
  return new Map(rows.map(({ seq, threshold }) => [seq, threshold]));
}

/**
 * Compares the rewards of these steps with the stored scales and stores what changed. A changed scale changes what success means: every step
 * of the run is marked. A scale returns to [0, 1] when its last outlier is gone, which only a scan of the whole run shows.
 */
export async function updateRewardScales(client: Client, steps: readonly StepKey[]): Promise<void> {
  const stored = await selectRewardScales(client, [...new Set(steps.map((s) => s.run_seq))]);
  const known = new Map(stored.map((scale) => [keyOf(scale), scale.unit_rewards]));
  const seen = new Map((await selectSeenScales(client, steps)).map((scale) => [keyOf(scale), scale]));
  const changed = [...seen.values()].filter((scale) => {
    const wasUnit = known.get(keyOf(scale));
    return wasUnit === undefined || (wasUnit && !scale.unit_rewards);
  });
  if (changed.length > 0) await writeRewardScales(client, changed);
  const doubtful = stored.filter((scale) => !scale.unit_rewards && (seen.get(keyOf(scale))?.unit_rewards ?? true));
  if (doubtful.length > 0) await restoreUnitScales(client, doubtful);
}

/** Plan: per step an Index Scan using rollouts_run_step_idx. */
async function selectSeenScales(client: Client, steps: readonly StepKey[]): Promise<RewardScale[]> {
  const { rows } = await client.query<RewardScale>({
    name: 'figures-seen-scales',
    text: `SELECT r.run_seq, r.env_id, COALESCE(bool_and(r.reward BETWEEN 0 AND 1), true) AS unit_rewards
      FROM unnest($1::int[], $2::smallint[], $3::int[]) AS s(run_seq, phase, step)
      JOIN rollouts r ON r.run_seq = s.run_seq AND COALESCE(r.step, -1) = s.step AND r.phase = s.phase GROUP BY 1, 2`,
    values: [steps.map((s) => s.run_seq), steps.map((s) => s.phase), steps.map((s) => s.step)],
  });
  return rows;
}

async function writeRewardScales(client: Client, scales: readonly RewardScale[]): Promise<void> {
  await client.query(
    `WITH changed AS (
       INSERT INTO run_environments AS e (run_seq, env_id, unit_rewards) SELECT * FROM jsonb_to_recordset($1::jsonb) AS n(run_seq int, env_id int, unit_rewards boolean)
       ORDER BY 1, 2
       ON CONFLICT (run_seq, env_id) DO UPDATE SET unit_rewards = e.unit_rewards AND excluded.unit_rewards WHERE e.unit_rewards AND NOT excluded.unit_rewards
       RETURNING run_seq, xmax <> 0 AS flipped)
     INSERT INTO dirty_steps (run_seq, phase, step)
     SELECT DISTINCT s.run_seq, s.phase, s.step FROM step_rollups s JOIN changed c ON c.run_seq = s.run_seq AND c.flipped WHERE s.env_id = 0`,
    [JSON.stringify(scales)],
  );
}

/**
 * Restores the scale of those environments whose rewards all lie in [0, 1] again. Plan: per environment the ends of rollouts_run_reward_idx
 * and rollouts_run_reward_ascending_idx, up to the first row of the environment.
 */
async function restoreUnitScales(client: Client, environments: readonly RunEnvironmentKey[]): Promise<void> {
  await client.query(
    `WITH restored AS (
       UPDATE run_environments e SET unit_rewards = true FROM jsonb_to_recordset($1::jsonb) AS n(run_seq int, env_id int)
       WHERE (e.run_seq, e.env_id) = (n.run_seq, n.env_id) AND NOT e.unit_rewards
         AND NOT EXISTS (SELECT FROM rollouts r WHERE r.run_seq = n.run_seq AND r.env_id = n.env_id AND r.reward IS NOT NULL AND COALESCE(r.reward, '-Infinity') > 1)
         AND NOT EXISTS (SELECT FROM rollouts r WHERE r.run_seq = n.run_seq AND r.env_id = n.env_id AND COALESCE(r.reward, 'Infinity') < 0)
       RETURNING e.run_seq)
     INSERT INTO dirty_steps (run_seq, phase, step)
     SELECT DISTINCT s.run_seq, s.phase, s.step FROM step_rollups s WHERE s.run_seq IN (SELECT run_seq FROM restored) AND s.env_id = 0`,
    [JSON.stringify(environments)],
  );
}
