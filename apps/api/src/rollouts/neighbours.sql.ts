import type pg from 'pg';
import type { RolloutRecord } from './rollout.sql.ts';
import { sampleSql } from './sample.sql.ts';

export interface Neighbour {
  id: string;
  step: number | null;
  sample: number | null;
  reward: number | null;
}
export interface Neighbours {
  previous_sample: Neighbour | null;
  next_sample: Neighbour | null;
  best_sample: Neighbour | null;
  previous_step: Neighbour | null;
  next_step: Neighbour | null;
}

const one = (from: string) =>
  `(SELECT json_build_object('id', o.id, 'step', o.step, 'sample', ${sampleSql('o')}, 'reward', o.reward) FROM ${from})`;
const group = 'rollouts o WHERE o.run_seq = $1 AND o.group_key = $2 AND o.phase = $3 AND COALESCE(o.step, -1) = $4';
const position = '(COALESCE(o.sample_idx, 2147483647), o.seq)';
const ownPosition = '(COALESCE($5::int, 2147483647), $6::bigint)';
/** The step of the task's next group, then the sample in it with the nearest number. */
const step = (
  beyond: '<' | '>',
  order: string,
) => `rollouts o WHERE o.run_seq = $1 AND o.phase = $3 AND o.task_id = $7 AND (o.group_key, o.step) = (
  SELECT g.group_key, g.step FROM rollout_groups g WHERE g.run_seq = $1 AND g.task_id = $7 AND g.phase = $3 AND g.step ${beyond} $4 AND $4 >= 0 AND g.step >= 0 ORDER BY g.step ${order} LIMIT 1)
  ORDER BY abs(COALESCE(o.sample_idx, 0) - COALESCE($5::int, 0)), o.seq LIMIT 1`;

/** Plan: rollouts_run_group_idx within the group; rollout_groups_task_idx for the adjacent step, then rollouts_run_group_idx again. */
const NEIGHBOURS = `SELECT
  ${one(`${group} AND ${position} < ${ownPosition} ORDER BY COALESCE(o.sample_idx, 2147483647) DESC, o.seq DESC LIMIT 1`)} AS previous_sample,
  ${one(`${group} AND ${position} > ${ownPosition} ORDER BY COALESCE(o.sample_idx, 2147483647), o.seq LIMIT 1`)} AS next_sample,
  ${one(`${group} AND o.seq <> $6 AND o.reward > COALESCE($8::float8, '-Infinity') ORDER BY o.reward DESC, o.seq LIMIT 1`)} AS best_sample,
  ${one(step('<', 'DESC'))} AS previous_step, ${one(step('>', 'ASC'))} AS next_step`;

export async function selectNeighbours(pool: pg.Pool, rollout: RolloutRecord): Promise<Neighbours> {
  const { rows } = await pool.query<Neighbours>({
    name: 'rollout-neighbours',
    text: NEIGHBOURS,
    values: [
      rollout.run_seq,
      rollout.group_key,
      rollout.phase,
      rollout.step ?? -1,
      rollout.sample_idx,
      rollout.seq,
      rollout.task_id,
      rollout.reward,
    ],
  });
  return rows[0]!;
}

export interface CallRow {
  index: number;
  sid: string;
  tool: string;
  duration_ms: number | null;
  failure_class: string | null;
}

/** Plan: rollout_calls_pkey. */
export async function selectCalls(pool: pg.Pool, seq: string): Promise<CallRow[]> {
  const { rows } = await pool.query<CallRow>(
    'SELECT index, sid, tool, duration_ms, failure_class FROM rollout_calls WHERE rollout_seq = $1 ORDER BY index',
    [seq],
  );
  return rows;
}
