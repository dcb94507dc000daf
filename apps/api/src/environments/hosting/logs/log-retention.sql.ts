import type pg from 'pg';
import type { LogRow } from './hosting-log.sql.ts';

type Client = Pick<pg.Pool, 'query'>;
const COLUMNS = 'seq::float8 AS seq, source_id AS source, version_id, at, stream, severity, text';
const BATCH = 10_000;

/** Environments that were deployed, in the order of their ids. */
export async function selectEnvironmentsWithLogs(client: Client, after: string, limit: number): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT DISTINCT environment_id AS id FROM environment_deploys WHERE ($1 = '' OR environment_id > nullif($1, '')::uuid) ORDER BY 1 LIMIT $2`,
    [after, limit],
  );
  return rows.map(({ id }) => id);
}

/** The `seq` up to which lines of instances leave the database, by age or because newer ones fill it; 0: none do. */
export async function selectArchiveLimit(client: Client, environmentId: string, days: number, lines: number): Promise<number> {
  const { rows } = await client.query<{ seq: number }>(
    `SELECT greatest(
       (SELECT coalesce(max(seq), 0) FROM hosting_logs WHERE environment_id = $1 AND version_id IS NOT NULL AND at < now() - $2 * interval '1 day'),
       coalesce((SELECT seq FROM hosting_logs WHERE environment_id = $1 AND version_id IS NOT NULL ORDER BY seq DESC OFFSET $3 LIMIT 1), 0)
     )::float8 AS seq`,
    [environmentId, days, lines],
  );
  return rows[0]!.seq;
}

export async function selectRuntimeLines(
  client: Client,
  environmentId: string,
  after: number,
  upTo: number,
  limit: number,
): Promise<LogRow[]> {
  const { rows } = await client.query<LogRow>(
    `SELECT ${COLUMNS} FROM hosting_logs WHERE environment_id = $1 AND version_id IS NOT NULL AND hosting_logs.seq > $2 AND hosting_logs.seq <= $3
     ORDER BY hosting_logs.seq LIMIT $4`,
    [environmentId, after, upTo, limit],
  );
  return rows;
}

/** Deletes lines of instances, in batches. */
export async function deleteLinesUpTo(client: Client, environmentId: string, upTo: number): Promise<void> {
  for (let deleted = BATCH; deleted === BATCH;) {
    const { rowCount } = await client.query(
      `DELETE FROM hosting_logs WHERE seq IN (
         SELECT seq FROM hosting_logs WHERE environment_id = $1 AND version_id IS NOT NULL AND seq <= $2 LIMIT ${BATCH})`,
      [environmentId, upTo],
    );
    deleted = rowCount ?? 0;
  }
}

/** Deploys that ended so long ago and have lines in the database, or that expire. */
export async function selectEndedBuilds(
  client: Client,
  environmentId: string,
  days: number,
  expireDays: number,
): Promise<{ id: string; isExpired: boolean }[]> {
  const { rows } = await client.query<{ id: string; isExpired: boolean }>(
    `SELECT id, ended_at < now() - $3 * interval '1 day' AS "isExpired" FROM environment_deploys
     WHERE environment_id = $1 AND (
       (ended_at < now() - $2 * interval '1 day' AND EXISTS (SELECT FROM hosting_logs WHERE source_id = environment_deploys.id))
       OR ended_at BETWEEN now() - ($3 + 2) * interval '1 day' AND now() - $3 * interval '1 day')`,
    [environmentId, days, expireDays],
  );
  return rows;
}

export async function selectWholeLog(client: Client, sourceId: string): Promise<LogRow[]> {
  const { rows } = await client.query<LogRow>(`SELECT ${COLUMNS} FROM hosting_logs WHERE source_id = $1 ORDER BY hosting_logs.seq`, [
    sourceId,
  ]);
  return rows;
}

export async function deleteLinesOf(client: Client, sourceId: string): Promise<void> {
  await client.query('DELETE FROM hosting_logs WHERE source_id = $1', [sourceId]);
}
