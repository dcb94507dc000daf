import type pg from 'pg';

/** Counts of the uploaded events of a run. */
export interface IngestCounts {
  accepted: number;
  duplicates: number;
  conflicts: number;
  late: number;
  nonfinite: number;
}

/** Stores new activity and notifies the streams of every replica. */
export async function touchRuns(pool: pg.Pool, runs: ReadonlyMap<number, IngestCounts>): Promise<void> {
  await pool.query(
    `WITH news AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS n(run_seq int, accepted bigint, duplicates bigint, conflicts bigint, late bigint, nonfinite bigint)),
     counted AS (
       INSERT INTO ingest_counters AS c (run_seq, accepted, duplicates, conflicts, late, nonfinite) SELECT * FROM news ORDER BY run_seq
       ON CONFLICT (run_seq) DO UPDATE SET accepted = c.accepted + excluded.accepted, duplicates = c.duplicates + excluded.duplicates,
         conflicts = c.conflicts + excluded.conflicts, late = c.late + excluded.late, nonfinite = c.nonfinite + excluded.nonfinite),
     locked AS (SELECT id FROM runs WHERE seq IN (SELECT run_seq FROM news) ORDER BY seq FOR UPDATE),
     touched AS (UPDATE runs SET updated_at = now() WHERE id IN (SELECT id FROM locked) RETURNING id, org_id, version)
     SELECT pg_notify('palestra_runs', json_build_object('id', id, 'org', org_id, 'v', version::text)::text) FROM touched`,
    [JSON.stringify([...runs].map(([run_seq, counts]) => ({ run_seq, ...counts })))],
  );
}

/** Tells every replica which steps of runs have new figures. */
export async function notifyChanges(pool: pg.Pool, changes: readonly object[]): Promise<void> {
  await pool.query(`SELECT pg_notify('palestra_runs', n) FROM unnest($1::text[]) AS n`, [changes.map((item) => JSON.stringify(item))]);
}
