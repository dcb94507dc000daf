import type pg from 'pg';

/** Runs whose steps are to be inferred again. Plan: a scan of runs' small table; bounded. */
export async function selectDueRuns(pool: pg.Pool, limit: number): Promise<number[]> {
  const { rows } = await pool.query<{ seq: number }>(
    'SELECT seq FROM runs WHERE inference_due AND deleted_at IS NULL ORDER BY seq LIMIT $1',
    [limit],
  );
  return rows.map(({ seq }) => seq);
}

/** One rollout whose step is not known, as step inference sees it. */
export interface ArrivalRow {
  seq: string;
  task_id: number;
  phase: number;
  /** Milliseconds since the epoch. */
  received_at: number;
  step: number | null;
  group_key: string | null;
  sample_idx: number | null;
  provenance: number;
}

/** Takes the mark off and reads every rollout of the run whose step was not told. Plan: Index Scan using rollouts_run_seq_idx. */
export async function selectArrivals(pool: pg.Pool, runSeq: number, mask: number, inferred: number): Promise<ArrivalRow[]> {
  const { rows } = await pool.query<{
    arrivals: [string, number, number, number, number | null, string | null, number | null, number][] | null;
  }>(
    `WITH taken AS (UPDATE runs SET inference_due = false WHERE seq = $1)
     SELECT json_agg(json_build_array(seq::text, task_id, phase, extract(epoch FROM received_at)::float8 * 1000, step, group_key::text, sample_idx, provenance) ORDER BY seq) AS arrivals
     FROM rollouts WHERE run_seq = $1 AND task_id IS NOT NULL AND provenance & $2 = ANY(ARRAY[0, $3::int])`,
    [runSeq, mask, inferred],
  );
  return (rows[0]?.arrivals ?? []).map(([seq, task_id, phase, received_at, step, group_key, sample_idx, provenance]) => ({
    seq,
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
  phase: number;
  step: number | null;
  group_key: string | null;
  sample_idx: number | null;
  provenance: number;
}

/** Plan: rollouts_pkey; steps that rows left and reached are marked. A row whose step was told meanwhile is left alone. */
const WRITE = `
WITH fact AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS f(seq bigint, phase smallint, step int, group_key bigint, sample_idx int, provenance int)
), old AS MATERIALIZED (
  SELECT r.seq, r.run_seq, r.phase, r.step FROM rollouts r WHERE r.seq = ANY(ARRAY(SELECT seq FROM fact)) AND r.provenance & $2 = ANY(ARRAY[0, $3::int]) ORDER BY r.seq FOR UPDATE
), written AS (
  UPDATE rollouts r SET phase = f.phase, step = f.step, group_key = f.group_key, sample_idx = f.sample_idx, provenance = f.provenance
  FROM fact f JOIN old USING (seq) WHERE r.seq = f.seq RETURNING r.run_seq, r.phase, r.step
)
INSERT INTO dirty_steps (run_seq, phase, step)
SELECT DISTINCT run_seq, phase, COALESCE(step, -1) FROM (SELECT run_seq, phase, step FROM old UNION ALL SELECT run_seq, phase, step FROM written) s ORDER BY 1, 2, 3
ON CONFLICT DO NOTHING`;

export async function writeInferred(
  pool: pg.Pool,
  runSeq: number,
  rows: readonly InferredRow[],
  bits: { mask: number; inferred: number },
  summary: object,
): Promise<void> {
  if (rows.length > 0)
    await pool.query({ name: 'rollouts-inferred', text: WRITE, values: [JSON.stringify(rows), bits.mask, bits.inferred] });
  await pool.query('UPDATE runs SET inference = $2 WHERE seq = $1', [runSeq, summary]);
}
