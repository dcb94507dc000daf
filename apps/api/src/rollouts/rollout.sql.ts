import type pg from 'pg';

/** The reward of a rollout: reported, else the sum. One that failed by no fault of its policy has none: a false zero would be learned from. */
export function scoreOf(rollout: string): string {
  return `CASE WHEN ${rollout}.failure_class IS NULL THEN COALESCE(${rollout}.reward_reported, ${rollout}.reward) END`;
}

/** The columns of a rollout's narrow row, as `RolloutRecord`. Turns that were not counted yet are counted here. */
const COLUMNS = `
  r.id, r.run_id, r.rollout_name, r.environment, r.environment_id, r.variant, r.split, COALESCE(r.step_info, r.step_start) AS step,
  COALESCE(r.task_index_info, r.task_index_start) AS task_index, ${scoreOf('r')} AS reward,
  CASE WHEN r.failure_class IS NULL THEN r.max_reward END AS max_reward, r.num_messages, r.num_tool_calls, r.max_index,
  COALESCE(r.turns_reported, r.turns_counted, (${countTurns('r')})) AS turns, r.finished, r.stop, r.failure_class, r.nonfinite, r.created_at, r.updated_at,
  extract(epoch FROM now() - r.updated_at)::float8 * 1000 AS age_ms`;

/** Turns = runs of (reasoning, assistant_message, tool_call) between other messages (dashboard.md 2.3); an index-ordered scan. */
function countTurns(rollout: string): string {
  return `SELECT count(*)::int FROM (
    SELECT type IN ('reasoning', 'assistant_message', 'tool_call') AS policy,
      lag(type IN ('reasoning', 'assistant_message', 'tool_call')) OVER (ORDER BY index) AS before
    FROM rollout_messages WHERE org_id = ${rollout}.org_id AND rollout_id = ${rollout}.id) m WHERE policy AND before IS NOT TRUE`;
}

export interface RolloutRecord {
  id: string;
  run_id: string | null;
  rollout_name: string | null;
  environment: string | null;
  environment_id: string | null;
  variant: string | null;
  split: string | null;
  step: number | null;
  task_index: number | null;
  reward: number | null;
  max_reward: number | null;
  num_messages: number;
  num_tool_calls: number;
  max_index: number;
  turns: number;
  finished: boolean;
  stop: string | null;
  failure_class: 'environment' | 'infrastructure' | null;
  nonfinite: boolean;
  created_at: Date;
  updated_at: Date;
  age_ms: number;
}

/** Sortable columns; the expression and whether missing values exist. */
export const rolloutSorts = {
  created_at: 'r.created_at',
  reward: scoreOf('r'),
  step: 'COALESCE(r.step_info, r.step_start)',
  task: 'COALESCE(r.task_index_info, r.task_index_start)',
  turns: 'COALESCE(r.turns_reported, r.turns_counted)',
  messages: 'r.num_messages',
} as const;
export type RolloutSort = keyof typeof rolloutSorts;

export interface RolloutPage {
  orgId: string;
  runId: string;
  sort: RolloutSort;
  order: 'asc' | 'desc';
  limit: number;
  offset: number;
}

/** Index scan of rollouts_run_id_created_at_id_idx for the default order; a sort of the run's rollouts for the others. */
export async function selectRollouts(pool: pg.Pool, page: RolloutPage): Promise<RolloutRecord[]> {
  const { rows } = await pool.query<RolloutRecord>(
    `SELECT ${COLUMNS} FROM rollouts r WHERE r.run_id = $1 AND r.org_id = $2
     ORDER BY ${rolloutSorts[page.sort]} ${page.order === 'asc' ? 'ASC' : 'DESC'} NULLS LAST, r.id ${page.order === 'asc' ? 'ASC' : 'DESC'} LIMIT $3 OFFSET $4`,
    [page.runId, page.orgId, page.limit, page.offset],
  );
  return rows;
}

export async function countRollouts(pool: pg.Pool, orgId: string, runId: string): Promise<number> {
  const { rows } = await pool.query<{ total: number }>('SELECT count(*)::int AS total FROM rollouts WHERE run_id = $1 AND org_id = $2', [
    runId,
    orgId,
  ]);
  return rows[0]!.total;
}

export interface RolloutDetail extends RolloutRecord {
  run_name: string | null;
  start: Record<string, unknown> | null;
  rollout_info: Record<string, unknown> | null;
}

export async function selectRollout(pool: pg.Pool, orgId: string, id: string): Promise<RolloutDetail | null> {
  const { rows } = await pool.query<RolloutDetail>(
    `SELECT ${COLUMNS}, runs.name AS run_name, meta.start, meta.rollout_info
     FROM rollouts r LEFT JOIN runs ON runs.id = r.run_id LEFT JOIN rollout_meta meta ON meta.org_id = r.org_id AND meta.rollout_id = r.id
     WHERE r.org_id = $1 AND r.id = $2`,
    [orgId, id],
  );
  return rows[0] ?? null;
}

export interface MessageRecord {
  event_id: string;
  index: number;
  type: string;
  name: string | null;
  call_id: string | null;
  content: string | null;
  content_reference: string | null;
  summary: string | null;
  reward: number | null;
  is_finished: boolean;
  metadata: Record<string, unknown>;
  nonfinite: boolean;
  sent_at: string;
}

/** Messages by index; equal indexes by event id, so that the order never changes between two reads. */
export async function selectMessages(
  pool: pg.Pool,
  orgId: string,
  rolloutId: string,
  from = 0,
  limit: number | null = null,
): Promise<MessageRecord[]> {
  const { rows } = await pool.query<MessageRecord>(
    `SELECT event_id, index, type, name, call_id, content, content_reference, summary, reward, is_finished, metadata, nonfinite, sent_at
     FROM rollout_messages WHERE org_id = $1 AND rollout_id = $2 AND index >= $3 ORDER BY index, event_id LIMIT $4`,
    [orgId, rolloutId, from, limit],
  );
  return rows;
}

/** Indexes that never arrived, at most 1000 of them. */
export async function selectMissingIndexes(pool: pg.Pool, orgId: string, rolloutId: string, maxIndex: number): Promise<number[]> {
  const { rows } = await pool.query<{ index: number }>(
    `SELECT index FROM generate_series(0, $3::int) AS index EXCEPT
     SELECT index FROM rollout_messages WHERE org_id = $1 AND rollout_id = $2 ORDER BY index LIMIT 1000`,
    [orgId, rolloutId, maxIndex],
  );
  return rows.map(({ index }) => index);
}

/** Erases a rollout with its messages. False when the organisation has none of that id. */
export async function deleteRollout(pool: pg.Pool, orgId: string, id: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `WITH gone AS (DELETE FROM rollouts WHERE org_id = $1 AND id = $2 RETURNING id),
     meta AS (DELETE FROM rollout_meta USING gone WHERE org_id = $1 AND rollout_id = gone.id),
     message AS (DELETE FROM rollout_messages USING gone WHERE org_id = $1 AND rollout_id = gone.id)
     SELECT id FROM gone`,
    [orgId, id],
  );
  return rowCount === 1;
}

/** Counts the turns of quiet rollouts once, so that lists need not; at most `limit` a call. Answers how many it did. */
export async function settleTurns(pool: pg.Pool, limit: number): Promise<number> {
  const { rowCount } = await pool.query(
    `UPDATE rollouts r SET turns_counted = counted.turns FROM (
       SELECT r.org_id, r.id, r.num_messages, (${countTurns('r')}) AS turns FROM rollouts r
       WHERE r.turns_counted IS NULL AND r.updated_at < now() - interval '2 seconds' LIMIT $1
     ) counted WHERE r.org_id = counted.org_id AND r.id = counted.id AND r.num_messages = counted.num_messages`,
    [limit],
  );
  return rowCount ?? 0;
}
