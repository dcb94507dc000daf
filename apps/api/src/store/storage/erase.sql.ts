import type pg from 'pg';
import { eraseRecordedCalls } from './ledger-retention.sql.ts';
import { MARK_BLOCKS_OF_GONE } from '../search-marks.sql.ts';
import { oldestOfRun } from '../run-order.sql.ts';
import { deleteEmptyPacks, markPacksOf } from './pack.sql.ts';

type Queryable = Pick<pg.Pool, 'query'>;

/** Tables whose rows belong to one rollout, by `rollout_seq`. tests/integration/store/sealing.spec.ts fails if one is missing here. */
const OF_ROLLOUT = [
  'rollout_starts',
  'rollout_meta',
  'rollout_transcripts',
  'rollout_tools',
  'rollout_calls',
  'annotations',
  'review_items',
];
/** Tables whose rows belong to one run, by `run_seq`. */
const OF_RUN = [
  'rollout_groups',
  'step_rollups',
  'tool_rollups',
  'dirty_steps',
  'run_environments',
  'ingest_counters',
  'saved_views',
  'rollout_exports',
  'rollout_search_runs',
  'review_queues',
  'alert_states',
  'alert_events',
];

export interface ErasableRollout {
  seq: string;
  id: string;
  org_id: string;
}

/**
 * Deletes rollouts with all dependent rows and the ledger of their recording, in the transaction of `client`. With `steps`, marks their
 * steps. Locks recordings first, as recorders do, then heads in the order of ingest. Returns the keys of packs that only had these
 * rollouts; other packs are marked. Plan: primary keys and rollout_seq indexes.
 */
export async function eraseRollouts(client: Queryable, seqs: readonly string[], steps: boolean): Promise<string[]> {
  await eraseRecordedCalls(client, seqs);
  await client.query('SELECT FROM rollout_heads WHERE seq = ANY($1::bigint[]) ORDER BY id FOR UPDATE', [seqs]);
  // Then narrow rows, as deriving does. Steps of the remaining rollouts are inferred again. The mark is set even if it stands already: an
  // inference that still sees these rollouts may be about to clear it.
  await client.query('SELECT FROM rollouts WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE', [seqs]);
  if (steps) {
    await client.query(
      `INSERT INTO dirty_steps (run_seq, phase, step) SELECT DISTINCT run_seq, phase, COALESCE(step, -1) FROM rollouts WHERE seq = ANY($1::bigint[])`,
      [seqs],
    );
    await client.query(
      `UPDATE runs SET inference_due = true WHERE seq IN (
         SELECT run_seq FROM rollouts WHERE seq = ANY($1::bigint[]) AND task_id IS NOT NULL AND provenance & 3 < 2)`,
      [seqs],
    );
  }
  await client.query(
    `DELETE FROM rollout_messages m USING rollout_heads h WHERE h.seq = ANY($1::bigint[]) AND m.day = h.day AND m.rollout_seq = h.seq`,
    [seqs],
  );
  await client.query(
    `WITH gone AS (DELETE FROM rollout_search WHERE rollout_seq = ANY($1::bigint[]) RETURNING block) ${MARK_BLOCKS_OF_GONE}`,
    [seqs],
  );
  const packs = await markPacksOf(client, seqs);
  for (const table of OF_ROLLOUT) {
    await client.query(`DELETE FROM ${table} WHERE rollout_seq = ANY($1::bigint[])`, [seqs]);
  }
  await client.query('DELETE FROM review_items WHERE other_seq = ANY($1::bigint[])', [seqs]);
  // Clients choose rollout ids and may upload them again: a link would then show the new rollout.
  await client.query(
    'DELETE FROM share_links l USING rollout_heads h WHERE h.seq = ANY($1::bigint[]) AND l.org_id = h.org_id AND h.id = ANY(l.rollout_ids)',
    [seqs],
  );
  await client.query('DELETE FROM rollouts WHERE seq = ANY($1::bigint[])', [seqs]);
  await client.query('DELETE FROM rollout_heads WHERE seq = ANY($1::bigint[])', [seqs]);
  return deleteEmptyPacks(client, packs);
}

/** Plan: rollout_heads_org_id_id_key. */
export async function selectErasable(pool: Queryable, orgId: string, id: string): Promise<ErasableRollout | null> {
  const { rows } = await pool.query<ErasableRollout>('SELECT seq, id, org_id FROM rollout_heads WHERE org_id = $1 AND id = $2', [
    orgId,
    id,
  ]);
  return rows[0] ?? null;
}

/** Some rollouts of a run. Plan: Index Scan using rollout_heads_run_seq_idx. */
export async function selectErasableOfRun(pool: Queryable, runSeq: number, limit: number): Promise<ErasableRollout[]> {
  const { rows } = await pool.query<ErasableRollout>(`SELECT seq, id, org_id FROM ${oldestOfRun('$1', '0', '$2', 'rollout_heads')} h`, [
    runSeq,
    limit,
  ]);
  return rows;
}

/** Hides the run from all readers, notifies its watchers and frees its name. Null when the organisation has no such run. */
export async function hideRun(client: Queryable, orgId: string, runId: string): Promise<number | null> {
  const { rows } = await client.query<{ seq: number }>(
    `WITH hidden AS (UPDATE runs SET deleted_at = now(), name_hash = sha256(name_hash || uuid_send(id))
       WHERE org_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING seq, id, org_id, version)
     SELECT seq, pg_notify('palestra_runs', json_build_object('id', id, 'org', org_id, 'v', version::text)::text) FROM hidden`,
    [orgId, runId],
  );
  return rows[0]?.seq ?? null;
}

/** Deletes the run's own rows in the transaction of `client`. Returns ids of its exports, whose files are objects. */
export async function eraseRunRows(client: Queryable, runSeq: number): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>('SELECT id FROM rollout_exports WHERE run_seq = $1', [runSeq]);
  for (const table of OF_RUN) {
    await client.query(`DELETE FROM ${table} WHERE run_seq = $1`, [runSeq]);
  }
  return rows.map(({ id }) => id);
}

export async function deleteRunRow(client: Queryable, runSeq: number): Promise<void> {
  await client.query('DELETE FROM runs WHERE seq = $1', [runSeq]);
}

export interface HiddenRun {
  seq: number;
  org_id: string;
  /** Since its deletion. */
  age_ms: number;
}

/** Deleted runs that are not erased completely. Plan: runs_deleted_idx (partial). */
export async function selectHiddenRuns(pool: Queryable): Promise<HiddenRun[]> {
  const { rows } = await pool.query<HiddenRun>(
    `SELECT seq, org_id, extract(epoch FROM now() - deleted_at)::float8 * 1000 AS age_ms FROM runs WHERE deleted_at IS NOT NULL ORDER BY seq LIMIT 100`,
  );
  return rows;
}
