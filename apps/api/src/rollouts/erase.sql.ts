import type pg from 'pg';

/** Tables whose rows belong to one rollout, by `rollout_seq`. */
const OF_ROLLOUT = ['rollout_meta', 'rollout_transcripts', 'rollout_tools', 'rollout_calls', 'rollout_search', 'annotations'];
/** Tables whose rows belong to one run, by `run_seq`. */
const OF_RUN = ['rollout_groups', 'step_rollups', 'tool_rollups', 'dirty_steps', 'run_environments', 'ingest_counters', 'saved_views', 'rollout_exports'];

/** Deletes rollouts with all that hangs on them, and marks the steps that they leave. Plan: primary keys and rollout_seq indexes. */
export async function eraseRollouts(client: Pick<pg.Pool, 'query'>, seqs: readonly string[]): Promise<void> {
  await client.query(
    `INSERT INTO dirty_steps (run_seq, phase, step) SELECT DISTINCT run_seq, phase, COALESCE(step, -1) FROM rollouts WHERE seq = ANY($1::bigint[])
     ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING`,
    [seqs],
  );
  await client.query(
    `DELETE FROM rollout_messages m USING rollout_heads h WHERE h.seq = ANY($1::bigint[]) AND m.day = h.day AND m.rollout_seq = h.seq`,
    [seqs],
  );
  for (const table of OF_ROLLOUT) await client.query(`DELETE FROM ${table} WHERE rollout_seq = ANY($1::bigint[])`, [seqs]);
  await client.query('DELETE FROM rollouts WHERE seq = ANY($1::bigint[])', [seqs]);
  await client.query('DELETE FROM rollout_heads WHERE seq = ANY($1::bigint[])', [seqs]);
}

export interface ErasableRollout {
  seq: string;
  id: string;
  /** It has objects in the store: a transcript, images, large bodies. */
  objects: boolean;
}

export async function selectErasable(pool: pg.Pool, orgId: string, id: string): Promise<ErasableRollout | null> {
  const { rows } = await pool.query<ErasableRollout>(
    'SELECT seq, id, sealed_at IS NOT NULL OR flags <> 0 AS objects FROM rollout_heads WHERE org_id = $1 AND id = $2',
    [orgId, id],
  );
  return rows[0] ?? null;
}

/** Some rollouts of a run. Plan: Index Scan using rollout_heads_run_seq_idx. */
export async function selectErasableOfRun(pool: pg.Pool, runSeq: number, limit: number): Promise<ErasableRollout[]> {
  const { rows } = await pool.query<ErasableRollout>(
    'SELECT seq, id, sealed_at IS NOT NULL OR flags <> 0 AS objects FROM rollout_heads WHERE run_seq = $1 ORDER BY seq LIMIT $2',
    [runSeq, limit],
  );
  return rows;
}

/** The run is gone for every reader; its name is free. Null when the organisation has no such run. */
export async function hideRun(pool: pg.Pool, orgId: string, runId: string): Promise<number | null> {
  const { rows } = await pool.query<{ seq: number }>(
    `UPDATE runs SET deleted_at = now(), name_hash = sha256(name_hash || uuid_send(id)) WHERE org_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING seq`,
    [orgId, runId],
  );
  return rows[0]?.seq ?? null;
}

export async function eraseEmptyRun(client: Pick<pg.Pool, 'query'>, runSeq: number): Promise<void> {
  for (const table of OF_RUN) await client.query(`DELETE FROM ${table} WHERE run_seq = $1`, [runSeq]);
  await client.query('DELETE FROM runs WHERE seq = $1', [runSeq]);
}

/** Runs that somebody deleted and nobody has finished erasing. */
export async function selectHiddenRuns(pool: pg.Pool): Promise<{ seq: number; org_id: string }[]> {
  const { rows } = await pool.query<{ seq: number; org_id: string }>('SELECT seq, org_id FROM runs WHERE deleted_at IS NOT NULL ORDER BY seq LIMIT 100');
  return rows;
}
