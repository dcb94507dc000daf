import type { LogSeverity } from '@palestra/protocol';
import type pg from 'pg';
import { notifyLogs } from '../hosting-events.ts';

type Client = Pick<pg.Pool, 'query'>;

/** Whose log it is. `versionId`: of an instance; null: of a deploy. */
export interface LogSource {
  sourceId: string;
  environmentId: string;
  orgId: string;
  versionId: string | null;
}

/** `palestra`: a line of this service. */
export type LogStream = 'stdout' | 'stderr' | 'palestra';

export interface NewLogLine extends LogSource {
  at: Date;
  stream: LogStream;
  severity: LogSeverity;
  text: string;
}

export interface LogRow {
  seq: number;
  source: string;
  /** Of an instance; null: of a deploy. */
  version_id: string | null;
  at: Date;
  stream: LogStream;
  severity: LogSeverity;
  text: string;
}

/** Which log: of one deploy, or of the instances of an environment. */
export type LogScope =
  | { kind: 'deploy'; environmentId: string; deployId: string }
  | { kind: 'instances'; environmentId: string; versionId: string | null; instanceId: string | null };

export interface LogFilter {
  /** Null: any. */
  severities: readonly LogSeverity[] | null;
  /** In lower case; null: any. */
  text: string | null;
}

/** Lines after `after` up to `upTo`, at most `limit`. */
export interface LogSelection extends LogFilter {
  after: number;
  upTo: number;
  limit: number;
}

/** Stores lines in their order. Lines of an environment that was deleted are left out. One process writes the lines of a source. */
export async function insertLines(client: Client, lines: readonly NewLogLine[]): Promise<void> {
  await client.query(
    `INSERT INTO hosting_logs (source_id, environment_id, version_id, org_id, at, stream, severity, text)
     SELECT n.source_id, n.environment_id, n.version_id, n.org_id, n.at, n.stream, n.severity, n.text
     FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::timestamptz[], $6::text[], $7::text[], $8::text[])
       WITH ORDINALITY AS n(source_id, environment_id, version_id, org_id, at, stream, severity, text, ord)
     JOIN environments AS e ON e.id = n.environment_id ORDER BY n.ord`,
    [
      lines.map(({ sourceId }) => sourceId),
      lines.map(({ environmentId }) => environmentId),
      lines.map(({ versionId }) => versionId),
      lines.map(({ orgId }) => orgId),
      lines.map(({ at }) => at),
      lines.map(({ stream }) => stream),
      lines.map(({ severity }) => severity),
      lines.map(({ text }) => text),
    ],
  );
  await notifyLogs(client, [...new Set(lines.map(({ environmentId }) => environmentId))]);
}

const COLUMNS = 'seq::float8 AS seq, source_id AS source, version_id, at, stream, severity, text';

/** The condition of a scope, with its parameters $1 to $3. */
function conditionOf(scope: LogScope): { where: string; values: unknown[] } {
  if (scope.kind === 'deploy')
    return { where: 'source_id = $1 AND environment_id = $2 AND $3::uuid IS NULL', values: [scope.deployId, scope.environmentId, null] };
  const { environmentId, versionId, instanceId } = scope;
  const version = 'version_id IS NOT NULL AND ($3::uuid IS NULL OR version_id = $3)';
  return instanceId === null
    ? { where: `environment_id = $1 AND $2::uuid IS NULL AND ${version}`, values: [environmentId, null, versionId] }
    : { where: `source_id = $1 AND environment_id = $2 AND ${version}`, values: [instanceId, environmentId, versionId] };
}

const MATCHES = '($6::text[] IS NULL OR severity = ANY($6)) AND ($7::text IS NULL OR strpos(lower(text), $7) > 0)';

/** `seq` of the newest line; 0 without any. Plan: Index Only Scan Backward using hosting_logs_source_id_seq_idx, or that by environment. */
export async function selectLastSeq(client: Client, scope: LogScope): Promise<number> {
  const { where, values } = conditionOf(scope);
  const { rows } = await client.query<{ seq: number }>(
    `SELECT seq::float8 AS seq FROM hosting_logs WHERE ${where} ORDER BY hosting_logs.seq DESC LIMIT 1`,
    values,
  );
  return rows[0]?.seq ?? 0;
}

/** The first lines of a selection, in their order. Plan: Index Scan using hosting_logs_source_id_seq_idx, or that by environment. */
export async function selectLines(
  client: Client,
  scope: LogScope,
  { after, upTo, severities, text, limit }: LogSelection,
): Promise<LogRow[]> {
  const { where, values } = conditionOf(scope);
  const { rows } = await client.query<LogRow>(
    `SELECT ${COLUMNS} FROM hosting_logs WHERE ${where} AND hosting_logs.seq > $4 AND hosting_logs.seq <= $5 AND ${MATCHES}
     ORDER BY hosting_logs.seq LIMIT $8`,
    [...values, after, upTo, severities, text, limit],
  );
  return rows;
}

/** The last lines of a selection, in their order. */
export async function selectLastLines(
  client: Client,
  scope: LogScope,
  { after, upTo, severities, text, limit }: LogSelection,
): Promise<LogRow[]> {
  const { where, values } = conditionOf(scope);
  const { rows } = await client.query<LogRow>(
    `SELECT ${COLUMNS} FROM hosting_logs WHERE ${where} AND hosting_logs.seq > $4 AND hosting_logs.seq <= $5 AND ${MATCHES}
     ORDER BY hosting_logs.seq DESC LIMIT $8`,
    [...values, after, upTo, severities, text, limit],
  );
  return rows.toReversed();
}

/** Lines of a deploy. */
export async function countLines(client: Client, sourceId: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>('SELECT count(*)::int AS count FROM hosting_logs WHERE source_id = $1', [
    sourceId,
  ]);
  return rows[0]!.count;
}

/** Time of the last line of a source that it wrote itself; null without any. Plan: Index Scan Backward using hosting_logs_source_id_seq_idx. */
export async function selectLastAt(client: Client, sourceId: string): Promise<Date | null> {
  const { rows } = await client.query<{ at: Date }>(
    `SELECT at FROM hosting_logs WHERE source_id = $1 AND stream <> 'palestra' ORDER BY seq DESC LIMIT 1`,
    [sourceId],
  );
  return rows[0]?.at ?? null;
}
