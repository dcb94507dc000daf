import type pg from 'pg';

type Client = Pick<pg.Pool, 'query'>;

/** One (run, phase, step); step -1 = not known. */
export interface StepKey {
  run_seq: number;
  phase: number;
  step: number;
}

/** The first key of the advisory lock under which figures of a run are computed; the second is the run. An arbitrary number. */
const FIGURES_LOCK = 1_718_183_795;

/** A step that is not known counts as vast above this number of rollouts. Below, rebuilding takes some milliseconds. */
const SMALL_UNKNOWN = 1_000;
/** Runs that one statement tries to lock. */
const MAX_TRIED = 64;

/** As the statements below compare it. */
export const stepText = ({ run_seq, phase, step }: StepKey): string => `${run_seq} ${phase} ${step}`;

/** Marks that are vast (`$1`) and not in quarantine (`$2`). */
const CHOSEN = `NOT m.run_seq || ' ' || m.phase || ' ' || m.step = ANY($2) AND (m.step < 0 AND EXISTS (
  SELECT FROM step_rollups r WHERE r.run_seq = m.run_seq AND r.env_id = 0 AND r.phase = m.phase AND r.step = m.step AND r.rollouts > ${SMALL_UNKNOWN})) = $1`;

export interface ChosenMarks {
  /** Steps that are not known and may hold a whole run. */
  vast: boolean;
  /** `stepText` of steps to leave out. */
  without: readonly string[];
}

/**
 * Locks the first run after `runSeq` that has such marks and that no other transaction computes, until the transaction ends. Plan:
 * dirty_steps_pkey in order, all marks; step_rollups_pkey for steps that are not known.
 */
export async function lockMarkedRun(client: Client, { vast, without }: ChosenMarks, after: number): Promise<number | null> {
  const { rows } = await client.query<{ run_seq: number }>(
    `WITH marked AS MATERIALIZED (SELECT DISTINCT run_seq FROM dirty_steps m WHERE run_seq > $3 AND ${CHOSEN} ORDER BY 1 LIMIT ${MAX_TRIED})
     SELECT run_seq FROM marked WHERE pg_try_advisory_xact_lock(${FIGURES_LOCK}, run_seq) LIMIT 1`,
    [vast, without, after],
  );
  return rows[0]?.run_seq ?? null;
}

/** Waits until no other transaction computes figures of the run, and locks it until this one ends. */
export async function lockRun(client: Client, runSeq: number): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1::int, $2::int)', [FIGURES_LOCK, runSeq]);
}

/**
 * Takes the marks of the first steps of a locked run. A transaction that changes a rollout adds its own marks and does not wait. Statements
 * after this one therefore see every change whose mark it took. They may see newer changes, whose marks stay for the next batch. The caller
 * decides when vast steps are due. A smaller unknown step is taken with the known ones: a rollout whose step becomes known leaves the one
 * step in the transaction in which it reaches the other, and is not counted twice. Plan: dirty_steps_pkey of the run.
 */
export async function takeMarks(client: Client, runSeq: number, { vast, without }: ChosenMarks, limit: number): Promise<StepKey[]> {
  const { rows } = await client.query<StepKey>(
    `WITH taken AS MATERIALIZED (SELECT DISTINCT phase, step FROM dirty_steps m WHERE run_seq = $3 AND ${CHOSEN} ORDER BY 1, 2 LIMIT $4),
     gone AS (DELETE FROM dirty_steps d USING taken t WHERE d.run_seq = $3 AND (d.phase, d.step) = (t.phase, t.step) RETURNING 1)
     SELECT $3::int AS run_seq, phase, step FROM taken WHERE (SELECT count(*) FROM gone) > 0`,
    [vast, without, runSeq, limit],
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
  id: string;
  org_id: string;
  version: string;
}

/** The run gets a new version. Null if it does not exist. Plan: runs_seq_key. */
export async function bumpRun(client: Client, runSeq: number): Promise<BumpedRun | null> {
  const { rows } = await client.query<BumpedRun>({
    name: 'figures-bump-run',
    text: 'UPDATE runs SET version = version + 1 WHERE seq = $1 RETURNING id, org_id, version::text',
    values: [runSeq],
  });
  return rows[0] ?? null;
}
