import type pg from 'pg';
import type { TranscriptLocation } from '../store/storage/transcript-reader.service.ts';

/** Locations of the messages of rollouts. Plan: rollout_heads_pkey. */
export async function selectTranscriptLocations(pool: pg.Pool, seqs: readonly string[]): Promise<TranscriptLocation[]> {
  const { rows } = await pool.query<TranscriptLocation>(
    'SELECT seq, day::text, sealed_at IS NOT NULL AS sealed FROM rollout_heads WHERE seq = ANY($1::bigint[]) ORDER BY seq',
    [seqs],
  );
  return rows;
}
