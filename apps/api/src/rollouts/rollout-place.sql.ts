import type pg from 'pg';
import type { TranscriptPlace } from '../store/storage/transcript-reader.service.ts';

/** Where the messages of rollouts are. Plan: rollout_heads_pkey. */
export async function selectPlaces(pool: pg.Pool, seqs: readonly string[]): Promise<TranscriptPlace[]> {
  const { rows } = await pool.query<TranscriptPlace>(
    'SELECT seq, day::text, sealed_at IS NOT NULL AS sealed FROM rollout_heads WHERE seq = ANY($1::bigint[]) ORDER BY seq',
    [seqs],
  );
  return rows;
}
