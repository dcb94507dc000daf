import type pg from 'pg';
import { ROLLOUT_COLUMNS, ROLLOUT_NAMES, type RolloutRecord } from '../../rollouts/rollout.sql.ts';
import type { GroupRecord } from './run-groups.sql.ts';

export type GroupMember = RolloutRecord & { last_reward: number | null; reward_steps: number };

/** Bound of the answer; groups are much smaller. */
const MAX_MEMBERS = 2_000;

/** The rollouts of a group by sample. Plan: Index Scan using rollouts_run_group_idx. */
export async function selectMembers(
  pool: pg.Pool,
  runSeq: number,
  group: Pick<GroupRecord, 'group_key' | 'phase' | 'step'>,
): Promise<GroupMember[]> {
  const { rows } = await pool.query<GroupMember>(
    `SELECT ${ROLLOUT_COLUMNS}, r.last_reward, r.reward_steps FROM rollouts r ${ROLLOUT_NAMES}
     WHERE r.run_seq = $1 AND r.group_key = $2 AND r.phase = $3 AND COALESCE(r.step, -1) = $4 ORDER BY r.sample_idx NULLS LAST, r.seq LIMIT $5`,
    [runSeq, group.group_key, group.phase, group.step, MAX_MEMBERS],
  );
  return rows;
}
