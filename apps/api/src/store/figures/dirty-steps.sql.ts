import type pg from 'pg';

/** One (run, phase, step); step -1 = not known. */
export interface StepKey {
  run_seq: number;
  phase: number;
  step: number;
}

/** Which marks a batch takes. */
export interface DirtySteps {
  runSeq?: number;
  /** Steps that are not known and may hold a whole run. */
  vast: boolean;
}

/** A step that is not known counts as vast above this number of rollouts. Below, rebuilding takes some milliseconds. */
const SMALL_UNKNOWN = 1_000;

/** As `takeDirtySteps` compares it. */
export const stepText = ({ run_seq, phase, step }: StepKey): string => `${run_seq} ${phase} ${step}`;

/**
 * Takes marks of steps, except those of `without`: a later change of a rollout sets a new mark. For one run it waits for marks that another
 * batch holds, so that a read after it sees what was marked before. The caller decides when vast steps are due. A smaller unknown step is
 * taken with the known ones: a rollout whose step becomes known then leaves the one step in the transaction in which it reaches the other,
 * and is never counted twice. Plan: dirty_steps_pkey in order, bounded; step_rollups_pkey for steps that are not known.
 */
export async function takeDirtySteps(
  client: Pick<pg.Pool, 'query'>,
  { runSeq, vast }: DirtySteps,
  limit: number,
  without: readonly string[],
): Promise<StepKey[]> {
  const { rows } = await client.query<StepKey>(
    `DELETE FROM dirty_steps d USING (
       SELECT run_seq, phase, step FROM dirty_steps m WHERE ($1::int IS NULL OR run_seq = $1) AND NOT run_seq || ' ' || phase || ' ' || step = ANY($5) AND (step < 0 AND EXISTS (
         SELECT FROM step_rollups r WHERE r.run_seq = m.run_seq AND r.env_id = 0 AND r.phase = m.phase AND r.step = m.step AND r.rollouts > $4)) = $2
       ORDER BY run_seq, phase, step LIMIT $3 FOR UPDATE ${runSeq === undefined ? 'SKIP LOCKED' : ''}) taken
     WHERE (d.run_seq, d.phase, d.step) = (taken.run_seq, taken.phase, taken.step) RETURNING d.run_seq, d.phase, d.step`,
    [runSeq ?? null, vast, limit, SMALL_UNKNOWN, without],
  );
  return rows;
}

/** Plan: the first entry of dirty_steps_pkey. */
export async function hasDirtySteps(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ due: boolean }>({
    name: 'figures-due',
    text: 'SELECT EXISTS (SELECT FROM dirty_steps) AS due',
  });
  return rows[0]!.due;
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
    name: 'figures-bump-runs',
    text: `UPDATE runs SET version = version + 1 WHERE seq IN (SELECT seq FROM runs WHERE seq = ANY($1::int[]) ORDER BY seq FOR UPDATE)
      RETURNING seq, id, org_id, version::text`,
    values: [runSeqs],
  });
  return rows;
}
