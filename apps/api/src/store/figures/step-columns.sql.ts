import type { Columns } from '@palestra/metrics';
import type pg from 'pg';
import type { ArrivalWindow } from './arrival-windows.ts';
import type { StepKey } from './dirty-steps.sql.ts';
import { type StepColumns, stepColumns, type StoredRollout } from './step-columns.ts';

const COLUMNS: Record<keyof StoredRollout, string> = {
  seq: 'seq',
  envId: 'env_id',
  taskId: 'task_id',
  group: 'group_key::text',
  groupSize: 'group_size',
  reward: 'COALESCE(reward, partial_reward)',
  rewardPositive: 'reward_positive',
  lastReward: 'last_reward',
  rewardSteps: 'reward_steps',
  stop: 'stop',
  failure: 'failure',
  turns: 'turns',
  toolTurns: 'tool_turns',
  messages: 'messages',
  calls: 'calls',
  callErrors: 'call_errors',
  tokensOut: 'tokens_out',
  tokensTool: 'tokens_tool',
  gaps: 'gaps',
  flags: 'flags',
  provenance: 'provenance',
  finished: 'finished',
  receivedAt: `date_part('epoch', received_at) * 1000`,
};
/** One JSON list per column: half the cost of a JSON object per row. */
const LISTS = Object.entries(COLUMNS)
  .map(([name, column]) => `COALESCE(array_to_json(array_agg(${column})), '[]') AS "${name}"`)
  .join(', ');

/** The rollouts of each step. Plan: per step an Index Scan using rollouts_run_step_idx, which is in `seq` order. */
export async function selectStepColumns(client: Pick<pg.Pool, 'query'>, steps: readonly StepKey[]): Promise<StepColumns[]> {
  const { rows } = await client.query<Columns<StoredRollout>>({
    name: 'figures-step-columns',
    text: `SELECT c.* FROM unnest($1::int[], $2::smallint[], $3::int[]) WITH ORDINALITY AS s(run_seq, phase, step, position)
      CROSS JOIN LATERAL (
        SELECT ${LISTS} FROM (SELECT * FROM rollouts WHERE run_seq = s.run_seq AND COALESCE(step, -1) = s.step AND phase = s.phase ORDER BY seq) r) c
      ORDER BY s.position`,
    values: [steps.map((s) => s.run_seq), steps.map((s) => s.phase), steps.map((s) => s.step)],
  });
  return rows.map(stepColumns);
}

/** The rollouts of one phase without a known step, by arrival window. Plan: per window an Index Scan using rollouts_run_step_idx over its part of the run. */
export async function selectWindowColumns(
  client: Pick<pg.Pool, 'query'>,
  of: { runSeq: number; phase: number },
  windows: readonly ArrivalWindow[],
): Promise<StepColumns[]> {
  const { rows } = await client.query<Columns<StoredRollout>>({
    name: 'figures-window-columns',
    text: `SELECT c.* FROM unnest($3::bigint[], $4::bigint[], $5::float8[], $6::float8[]) WITH ORDINALITY AS w(first_seq, last_seq, start, until, position)
      CROSS JOIN LATERAL (
        SELECT ${LISTS} FROM (
          SELECT * FROM rollouts WHERE run_seq = $1 AND COALESCE(step, -1) = -1 AND phase = $2 AND seq >= w.first_seq AND seq <= w.last_seq
            AND received_at >= to_timestamp(w.start / 1000) AND received_at < to_timestamp(w.until / 1000) ORDER BY seq) r) c
      ORDER BY w.position`,
    values: [
      of.runSeq,
      of.phase,
      windows.map((w) => w.first_seq),
      windows.map((w) => w.last_seq),
      windows.map((w) => w.from),
      windows.map((w) => w.to),
    ],
  });
  return rows.map(stepColumns);
}
