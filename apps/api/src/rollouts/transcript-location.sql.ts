import type pg from 'pg';
import type { TranscriptLocation } from '../store/storage/transcript-reader.service.ts';

export interface OwnedLocation extends TranscriptLocation {
  org_id: string;
}

/** Locations of the messages of rollouts. Plan: rollout_heads_pkey. */
export async function selectTranscriptLocations(pool: pg.Pool, seqs: readonly string[]): Promise<OwnedLocation[]> {
  const { rows } = await pool.query<OwnedLocation>(
    'SELECT seq, day::text, org_id, sealed_at IS NOT NULL AS sealed FROM rollout_heads WHERE seq = ANY($1::bigint[]) ORDER BY seq',
    [seqs],
  );
  return rows;
}
