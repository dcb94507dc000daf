import type pg from 'pg';

/** Whether no run exists yet. */
export async function hasNoRuns(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ empty: boolean }>('SELECT NOT EXISTS (SELECT 1 FROM runs) AS empty');
  return rows[0]!.empty;
}

/** Runs of the organisation with one of these names and the tag. Plan: an Index Scan using runs_org_id_name_hash_key per name. */
export async function selectDemoRuns(
  pool: pg.Pool,
  orgId: string,
  names: readonly string[],
  tag: string,
): Promise<{ id: string; seq: number }[]> {
  const { rows } = await pool.query<{ id: string; seq: number }>(
    `SELECT id, seq FROM runs WHERE org_id = $1 AND name_hash = ANY(ARRAY(SELECT sha256(convert_to(name, 'UTF8')) FROM unnest($2::text[]) AS name))
       AND deleted_at IS NULL AND $3 = ANY(tags)`,
    [orgId, names, tag],
  );
  return rows;
}

/** Open sessions of these keys. Plan: Index Scan using the partial index of open sessions. */
export async function selectLiveSids(pool: pg.Pool, orgId: string, keyIds: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ sid: string }>(
    'SELECT sid FROM sessions WHERE ended_at IS NULL AND org_id = $1 AND key_id = ANY($2::text[]) LIMIT 1000',
    [orgId, keyIds],
  );
  return rows.map(({ sid }) => sid);
}
