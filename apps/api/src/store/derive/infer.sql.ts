import type pg from 'pg';

/** Runs whose steps must be inferred again, except `without`. Plan: Index Scan using runs_inference_due_idx (partial), bounded. */
export async function selectDueRuns(pool: pg.Pool, limit: number, without: readonly number[]): Promise<number[]> {
  const { rows } = await pool.query<{ seq: number }>(
    'SELECT seq FROM runs WHERE inference_due AND deleted_at IS NULL AND NOT seq = ANY($2::int[]) ORDER BY seq LIMIT $1',
    [limit, without],
  );
  return rows.map(({ seq }) => seq);
}

/** The first key of the advisory lock under which steps of a run are inferred; the second is the run. */
export const INFERENCE_LOCK = 1_768_842_866;

/**
 * Runs `work` while no other process infers steps of this run: of two, the one that read first could write last. Not in a transaction, so
 * that others see the cleared mark at once.
 */
export async function withInferenceLock<T>(pool: pg.Pool, runSeq: number, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('SELECT pg_advisory_lock($1::int, $2::int)', [INFERENCE_LOCK, runSeq]);
    return await work(client);
  } finally {
    // A connection that cannot release the lock is closed, which releases it.
    await client.query('SELECT pg_advisory_unlock($1::int, $2::int)', [INFERENCE_LOCK, runSeq]).catch((error: Error) => (broken = error));
    client.release(broken);
  }
}

type Queryable = Pick<pg.Pool, 'query'>;

/** Clears the mark. False when there was none. Plan: runs_seq_key. */
export async function clearDue(client: Queryable, runSeq: number): Promise<boolean> {
  const { rowCount } = await client.query('UPDATE runs SET inference_due = false WHERE seq = $1 AND inference_due', [runSeq]);
  return rowCount === 1;
}

export async function markDue(client: Queryable, runSeq: number): Promise<void> {
  await client.query('UPDATE runs SET inference_due = true WHERE seq = $1', [runSeq]);
}

/** A rollout with an unknown step, as input of step inference. */
export interface ArrivalRow {
  seq: string;
  revision: number;
  task_id: number;
  phase: number;
  /** Milliseconds since the epoch. */
  received_at: number;
  step: number | null;
  group_key: string | null;
  sample_idx: number | null;
  provenance: number;
}

/**
 * All rollouts of the run without a reported step. A statement after `clearDue`, so that it sees everything that was marked before. Plan:
 * Index Scan using rollouts_run_seq_idx.
 */
export async function selectArrivals(client: Queryable, runSeq: number, mask: number, inferred: number): Promise<ArrivalRow[]> {
  const { rows } = await client.query<{
    arrivals: [string, number, number, number, number, number | null, string | null, number | null, number][] | null;
  }>(
    `SELECT json_agg(json_build_array(seq::text, revision, task_id, phase, extract(epoch FROM received_at)::float8 * 1000, step, group_key::text, sample_idx, provenance) ORDER BY seq) AS arrivals
     FROM rollouts WHERE run_seq = $1 AND task_id IS NOT NULL AND provenance & $2 = ANY(ARRAY[0, $3::int])`,
    [runSeq, mask, inferred],
  );
  return (rows[0]?.arrivals ?? []).map(([seq, revision, task_id, phase, received_at, step, group_key, sample_idx, provenance]) => ({
    seq,
    revision,
    task_id,
    phase,
    received_at,
    step,
    group_key,
    sample_idx,
    provenance,
  }));
}

export interface InferredRow {
  seq: string;
  /** Revision that it was inferred from. */
  revision: number;
  phase: number;
  step: number | null;
  group_key: string | null;
  sample_idx: number | null;
  provenance: number;
}

/**
 * Marks the steps that rows left and reached. Skips rows that were derived again meanwhile: their run is due again if their step needs
 * inference. Writes only the provenance bits of inference ($4), because a verdict may have been written meanwhile. Plan: rollouts_pkey.
 */
const WRITE = `
WITH fact AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS f(seq bigint, revision int, phase smallint, step int, group_key bigint, sample_idx int, provenance int)
), old AS MATERIALIZED (
  SELECT r.seq, r.run_seq, r.phase, r.step FROM rollouts r JOIN fact f ON f.seq = r.seq AND f.revision = r.revision
  WHERE r.seq = ANY(ARRAY(SELECT seq FROM fact)) AND r.provenance & $2 = ANY(ARRAY[0, $3::int]) ORDER BY r.seq FOR UPDATE OF r
), written AS (
  UPDATE rollouts r SET phase = f.phase, step = f.step, group_key = f.group_key, sample_idx = f.sample_idx,
    provenance = (r.provenance & ~$4::int) | (f.provenance & $4::int)
  FROM fact f JOIN old USING (seq) WHERE r.seq = f.seq RETURNING r.run_seq, r.phase, r.step
)
INSERT INTO dirty_steps (run_seq, phase, step)
SELECT DISTINCT run_seq, phase, COALESCE(step, -1) FROM (SELECT run_seq, phase, step FROM old UNION ALL SELECT run_seq, phase, step FROM written) s`;

export async function writeInferred(
  client: Queryable,
  runSeq: number,
  rows: readonly InferredRow[],
  bits: { mask: number; inferred: number; kept: number },
  summary: object,
): Promise<void> {
  if (rows.length > 0)
    await client.query({ name: 'rollouts-inferred', text: WRITE, values: [JSON.stringify(rows), bits.mask, bits.inferred, bits.kept] });
  await client.query('UPDATE runs SET inference = $2 WHERE seq = $1', [runSeq, summary]);
}
