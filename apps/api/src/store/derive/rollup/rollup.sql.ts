import type pg from 'pg';
import { arrayOf } from '../../../platform/database/copy-out.ts';
import type { ArrivalWindow } from './arrival-windows.ts';
import { KEEP_MARK } from '../../step-marks.sql.ts';

/** One (run, phase, step); step -1 = not known. */
export interface StepKey {
  run_seq: number;
  phase: number;
  step: number;
}

/** Columns of keys in the text of a statement: run, phase, step. */
export function stepArrays(steps: readonly StepKey[]): string {
  const [runs, phases, numbers] = [steps.map((s) => s.run_seq), steps.map((s) => s.phase), steps.map((s) => s.step)];
  return [arrayOf('int', runs), arrayOf('smallint', phases), arrayOf('int', numbers)].join(', ');
}

/** A rollout as rollups read it, in the order of `COLUMNS`. */
export type RollupTuple = [
  seq: string,
  envId: number,
  taskId: number | null,
  groupKey: string | null,
  reward: number | null,
  rewardPositive: number | null,
  lastReward: number | null,
  rewardSteps: number,
  groupSize: number | null,
  stop: number | null,
  failure: number | null,
  turns: number | null,
  messages: number,
  calls: number,
  callErrors: number,
  tokensOut: number | null,
  tokensTool: number | null,
  gaps: number,
  flags: number,
  provenance: number,
  finished: boolean,
  toolTurns: number | null,
  /** Milliseconds since the epoch. */
  receivedAt: number,
];
const COLUMNS =
  'seq env_id task_id group_key::text reward reward_positive last_reward reward_steps group_size stop failure turns messages calls call_errors tokens_out tokens_tool gaps flags provenance finished tool_turns received_at_ms'.split(
    ' ',
  );
/** One JSON list a column, empty without rows: half of what a JSON list a row costs, since PostgreSQL looks up each value's type only once. */
const ROWS = `concat_ws(',', ${COLUMNS.map((column) => `array_to_json(array_agg(r.${column}))`).join(', ')})`;

/** Rollouts of a step that is not known are made again with any other step up to so many: some milliseconds. */
const SMALL_UNKNOWN = 1_000;

/** As `takeDirtySteps` compares it. */
export const stepText = ({ run_seq, phase, step }: StepKey): string => `${run_seq} ${phase} ${step}`;

/**
 * Takes marks of steps, but of those `without`: whoever changes a rollout after this puts a new one. Of one run it waits for whoever is at it right now, so that
 * a read after it sees what was marked before. A step that is not known may hold a whole run (`vast`): the caller says when its turn is. A smaller
 * one is taken with the known steps, so that a rollout whose step is told later leaves the one in the transaction in which it reaches
 * the other, and is never counted twice. Plan: dirty_steps_pkey in order, bounded; step_rollups_pkey for steps that are not known.
 */
export async function takeDirtySteps(
  client: Pick<pg.Pool, 'query'>,
  scope: { runSeq?: number; vast: boolean },
  limit: number,
  without: readonly string[],
): Promise<StepKey[]> {
  const { rows } = await client.query<StepKey>(
    `DELETE FROM dirty_steps d USING (
       SELECT run_seq, phase, step FROM dirty_steps m WHERE ($1::int IS NULL OR run_seq = $1) AND NOT run_seq || ' ' || phase || ' ' || step = ANY($5) AND (step < 0 AND EXISTS (
         SELECT FROM step_rollups r WHERE r.run_seq = m.run_seq AND r.env_id = 0 AND r.phase = m.phase AND r.step = m.step AND r.rollouts > $4)) = $2
       ORDER BY run_seq, phase, step LIMIT $3 FOR UPDATE ${scope.runSeq === undefined ? 'SKIP LOCKED' : ''}) taken
     WHERE (d.run_seq, d.phase, d.step) = (taken.run_seq, taken.phase, taken.step) RETURNING d.run_seq, d.phase, d.step`,
    [scope.runSeq ?? null, scope.vast, limit, SMALL_UNKNOWN, without],
  );
  return rows;
}

/** Rollouts in `seq` order, as `ROWS` wrote them. */
function readRows(text: string): RollupTuple[] {
  const columns = JSON.parse(`[${text}]`) as unknown[][];
  return (columns[0] ?? []).map((seq, row) => {
    const tuple: unknown[] = [String(seq)];
    for (let column = 1; column < columns.length; column += 1) tuple.push(columns[column]![row]);
    return tuple as RollupTuple;
  });
}

const selectRows = (where: string) =>
  `SELECT ${ROWS} FROM (SELECT *, date_part('epoch', received_at) * 1000 AS received_at_ms FROM rollouts WHERE ${where} ORDER BY seq) r`;

/** All rollouts of the steps. Plan: per step an Index Scan using rollouts_run_step_idx, which is in `seq` order. */
export async function selectStepRows(client: Pick<pg.Pool, 'query'>, steps: readonly StepKey[]): Promise<RollupTuple[][]> {
  const { rows } = await client.query<{ rollouts: string }>({
    name: 'rollups-rows',
    text: `SELECT (${selectRows('run_seq = s.run_seq AND COALESCE(step, -1) = s.step AND phase = s.phase')}) AS rollouts
      FROM unnest($1::int[], $2::smallint[], $3::int[]) WITH ORDINALITY AS s(run_seq, phase, step, position) ORDER BY position`,
    values: [steps.map((s) => s.run_seq), steps.map((s) => s.phase), steps.map((s) => s.step)],
  });
  return rows.map(({ rollouts }) => readRows(rollouts));
}

/** Rollouts whose step is not known, of one phase, by windows of arrival. Plan: per window an Index Scan using rollouts_run_step_idx over its part of the run. */
export async function selectWindowRows(
  client: Pick<pg.Pool, 'query'>,
  of: { runSeq: number; phase: number },
  windows: readonly ArrivalWindow[],
): Promise<RollupTuple[][]> {
  const within = `run_seq = $1 AND COALESCE(step, -1) = -1 AND phase = $2 AND seq >= w.first_seq AND seq <= w.last_seq
    AND received_at >= to_timestamp(w.start / 1000) AND received_at < to_timestamp(w.until / 1000)`;
  const { rows } = await client.query<{ rollouts: string }>({
    name: 'rollups-window-rows',
    text: `SELECT (${selectRows(within)}) AS rollouts
      FROM unnest($3::bigint[], $4::bigint[], $5::float8[], $6::float8[]) WITH ORDINALITY AS w(first_seq, last_seq, start, until, position) ORDER BY position`,
    values: [
      of.runSeq,
      of.phase,
      windows.map((w) => w.first_seq),
      windows.map((w) => w.last_seq),
      windows.map((w) => w.from),
      windows.map((w) => w.to),
    ],
  });
  return rows.map(({ rollouts }) => readRows(rollouts));
}

export interface EnvironmentThreshold {
  run_seq: number;
  env_id: number;
  unit_rewards: boolean;
}

/** Plan: primary key. */
export async function selectThresholds(client: Pick<pg.Pool, 'query'>, runSeqs: readonly number[]): Promise<EnvironmentThreshold[]> {
  const { rows } = await client.query<EnvironmentThreshold>(
    'SELECT run_seq, env_id, unit_rewards FROM run_environments WHERE run_seq = ANY($1::int[])',
    [runSeqs],
  );
  return rows;
}

/** Thresholds that owners pinned, by run. Plan: runs_seq_key. */
export async function selectPinnedThresholds(client: Pick<pg.Pool, 'query'>, runSeqs: readonly number[]): Promise<Map<number, number>> {
  const { rows } = await client.query<{ seq: number; threshold: number }>(
    `SELECT seq, (settings->>'successThreshold')::float8 AS threshold FROM runs WHERE seq = ANY($1::int[]) AND jsonb_typeof(settings->'successThreshold') = 'number'`,
    [runSeqs],
  );
  return new Map(rows.map(({ seq, threshold }) => [seq, threshold]));
}

/** Success means something else now: every step of these environments' runs is made again. */
export async function writeThresholds(client: Pick<pg.Pool, 'query'>, rows: readonly EnvironmentThreshold[]): Promise<void> {
  await client.query(
    `WITH changed AS (
       INSERT INTO run_environments AS e (run_seq, env_id, unit_rewards) SELECT * FROM jsonb_to_recordset($1::jsonb) AS n(run_seq int, env_id int, unit_rewards boolean)
       ORDER BY 1, 2
       ON CONFLICT (run_seq, env_id) DO UPDATE SET unit_rewards = e.unit_rewards AND excluded.unit_rewards WHERE e.unit_rewards AND NOT excluded.unit_rewards
       RETURNING run_seq, xmax <> 0 AS flipped)
     INSERT INTO dirty_steps (run_seq, phase, step)
     SELECT DISTINCT s.run_seq, s.phase, s.step FROM step_rollups s JOIN changed c ON c.run_seq = s.run_seq AND c.flipped WHERE s.env_id = 0 ORDER BY 1, 2, 3
     ${KEEP_MARK}`,
    [JSON.stringify(rows)],
  );
}

/**
 * Of these those whose rewards all lie in [0, 1] again; every step of their runs is made again. Plan: per environment the ends of
 * rollouts_run_reward_idx and rollouts_run_reward_ascending_idx, up to the first row of the environment.
 */
export async function restoreThresholds(
  client: Pick<pg.Pool, 'query'>,
  rows: readonly Pick<EnvironmentThreshold, 'run_seq' | 'env_id'>[],
): Promise<{ run_seq: number; env_id: number }[]> {
  const { rows: restored } = await client.query<{ run_seq: number; env_id: number }>(
    `WITH restored AS (
       UPDATE run_environments e SET unit_rewards = true FROM jsonb_to_recordset($1::jsonb) AS n(run_seq int, env_id int)
       WHERE (e.run_seq, e.env_id) = (n.run_seq, n.env_id) AND NOT e.unit_rewards
         AND NOT EXISTS (SELECT FROM rollouts r WHERE r.run_seq = n.run_seq AND r.env_id = n.env_id AND r.reward IS NOT NULL AND COALESCE(r.reward, '-Infinity') > 1)
         AND NOT EXISTS (SELECT FROM rollouts r WHERE r.run_seq = n.run_seq AND r.env_id = n.env_id AND COALESCE(r.reward, 'Infinity') < 0)
       RETURNING e.run_seq, e.env_id
     ), marked AS (
       INSERT INTO dirty_steps (run_seq, phase, step)
       SELECT DISTINCT s.run_seq, s.phase, s.step FROM step_rollups s WHERE s.run_seq IN (SELECT run_seq FROM restored) AND s.env_id = 0 ORDER BY 1, 2, 3
       ${KEEP_MARK})
     SELECT * FROM restored`,
    [JSON.stringify(rows)],
  );
  return restored;
}

/** Where a step is not known: its rollups by window of arrival. */
export interface StepWindows {
  width_ms: number;
  windows: (ArrivalWindow & Omit<StepSums, keyof StepKey | 'env_id'>)[];
}

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

export interface GroupRow {
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

export interface BumpedRun {
  seq: number;
  id: string;
  org_id: string;
  version: string;
}

/** Runs get a new version, in order: two batches that touch the same runs wait for each other. Plan: runs_seq_key. */
export async function bumpRuns(client: Pick<pg.Pool, 'query'>, runSeqs: readonly number[]): Promise<BumpedRun[]> {
  const { rows } = await client.query<BumpedRun>({
    name: 'rollups-bump',
    text: `UPDATE runs SET version = version + 1 WHERE seq IN (SELECT seq FROM runs WHERE seq = ANY($1::int[]) ORDER BY seq FOR UPDATE)
      RETURNING seq, id, org_id, version::text`,
    values: [runSeqs],
  });
  return rows;
}
