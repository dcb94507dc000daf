import type { DeploySource, DeployState, HostingSettings } from '@palestra/protocol';
import type pg from 'pg';

type Client = Pick<pg.Pool, 'query'>;

/** Options that a deploy keeps for its job. */
export interface StoredDeployOptions {
  /** Of the environment from this version on; absent: as they are. */
  settings?: HostingSettings;
  /** Path in the folder. */
  dockerfile?: string;
}

export interface DeployError {
  code: string;
  detail: string;
  /** 1-based, in the log of the deploy; null: of no line. */
  line: number | null;
}

export interface DeployRow {
  id: string;
  environment_id: string;
  org_id: string;
  owner: string;
  name: string;
  state: DeployState;
  source: DeploySource;
  options: StoredDeployOptions;
  source_key: string | null;
  source_digest: string | null;
  commit: string | null;
  channel: string | null;
  version_id: string | null;
  version: number | null;
  reused: boolean;
  attempts: number;
  error: DeployError | null;
  author: string;
  cancel_requested_at: Date | null;
  created_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
}

const COLUMNS = `d.id, d.environment_id, d.org_id, e.owner, e.name, d.state, d.source, d.options, d.source_key, d.source_digest, d.commit, d.channel,
  d.version_id, v.number AS version, d.reused, d.attempts, d.error, d.author, d.cancel_requested_at, d.created_at, d.started_at, d.ended_at`;
const FROM = `FROM environment_deploys AS d JOIN environments AS e ON e.id = d.environment_id LEFT JOIN environment_versions AS v ON v.id = d.version_id`;

export interface NewDeploy {
  id: string;
  environmentId: string;
  orgId: string;
  source: DeploySource;
  options: StoredDeployOptions;
  sourceKey: string | null;
  channel: string | null;
  author: string;
}

export async function insertDeploy(client: Client, deploy: NewDeploy): Promise<void> {
  await client.query(
    `INSERT INTO environment_deploys (id, environment_id, org_id, state, source, options, source_key, channel, author)
     VALUES ($1, $2, $3, 'queued', $4, $5, $6, $7, $8)`,
    [deploy.id, deploy.environmentId, deploy.orgId, deploy.source, deploy.options, deploy.sourceKey, deploy.channel, deploy.author],
  );
}

/** Deploys of the organisation that have not ended. Plan: Index Only Scan using environment_deploys_open_idx. */
export async function countOpenDeploys(client: Client, orgId: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM environment_deploys WHERE org_id = $1 AND ended_at IS NULL',
    [orgId],
  );
  return rows[0]!.count;
}

/** Whether a deploy of anybody has not ended. Plan: Index Only Scan using environment_deploys_open_idx. */
export async function hasOpenDeploys(client: Client): Promise<boolean> {
  const { rows } = await client.query('SELECT FROM environment_deploys WHERE ended_at IS NULL LIMIT 1');
  return rows.length > 0;
}

/** Digests of the artifacts of all versions. */
export async function selectArtifactDigests(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ digest: string }>(
    'SELECT DISTINCT artifact_digest AS digest FROM environment_versions WHERE artifact_digest IS NOT NULL',
  );
  return rows.map(({ digest }) => digest);
}

export async function selectDeploy(client: Client, id: string): Promise<DeployRow | null> {
  const { rows } = await client.query<DeployRow>(`SELECT ${COLUMNS} ${FROM} WHERE d.id = $1`, [id]);
  return rows[0] ?? null;
}

/** Newest first. Plan: Index Scan using environment_deploys_environment_id_created_at_idx. */
export async function selectDeploys(client: Client, environmentId: string, limit: number): Promise<DeployRow[]> {
  const { rows } = await client.query<DeployRow>(
    `SELECT ${COLUMNS} ${FROM} WHERE d.environment_id = $1 ORDER BY d.created_at DESC, d.id LIMIT $2`,
    [environmentId, limit],
  );
  return rows;
}

/** A process takes the deploy; another one may have died with it. Null when it has ended. */
export async function beginDeploy(client: Client, id: string): Promise<DeployRow | null> {
  const { rowCount } = await client.query(
    `UPDATE environment_deploys SET state = 'building', started_at = coalesce(started_at, now()), attempts = attempts + 1
     WHERE id = $1 AND ended_at IS NULL`,
    [id],
  );
  return rowCount === 0 ? null : selectDeploy(client, id);
}

/** False when the deploy has ended. */
export async function setDeployState(client: Client, id: string, state: DeployState): Promise<boolean> {
  const { rowCount } = await client.query('UPDATE environment_deploys SET state = $2 WHERE id = $1 AND ended_at IS NULL', [id, state]);
  return rowCount === 1;
}

export async function setDeploySource(client: Client, id: string, digest: string, commit: string | null): Promise<void> {
  await client.query('UPDATE environment_deploys SET source_digest = $2, commit = $3 WHERE id = $1', [id, digest, commit]);
}

export interface DeployEnd {
  state: 'ready' | 'failed' | 'cancelled';
  error?: DeployError;
  versionId?: string;
  reused?: boolean;
}

/** False when it had ended before. */
export async function endDeploy(client: Client, id: string, { state, error, versionId, reused }: DeployEnd): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE environment_deploys SET state = $2, error = $3, version_id = $4, reused = $5, ended_at = now() WHERE id = $1 AND ended_at IS NULL`,
    [id, state, error ?? null, versionId ?? null, reused ?? false],
  );
  return rowCount === 1;
}

/** Ends a deploy that no process has begun, or asks its process to end it. */
export async function requestCancel(client: Client, id: string, error: DeployError): Promise<void> {
  await client.query(
    `UPDATE environment_deploys SET cancel_requested_at = coalesce(cancel_requested_at, now()),
       state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE state END,
       ended_at = CASE WHEN state = 'queued' THEN now() ELSE ended_at END,
       error = CASE WHEN state = 'queued' THEN $2::jsonb ELSE error END
     WHERE id = $1 AND ended_at IS NULL`,
    [id, error],
  );
}

export async function isCancelRequested(client: Client, id: string): Promise<boolean> {
  const { rows } = await client.query<{ cancelled: boolean }>(
    'SELECT cancel_requested_at IS NOT NULL AS cancelled FROM environment_deploys WHERE id = $1',
    [id],
  );
  // With its environment the deploy was deleted.
  return rows[0]?.cancelled ?? true;
}

/**
 * The newest deploy after this one that promotes the same channel, or did; null without any. It may have run before: jobs of deploys that arrive
 * in the same moment are not in their order, and a deploy that is repeated waits behind later ones.
 */
export async function selectSuccessor(client: Client, { id, environment_id: environmentId, channel }: DeployRow): Promise<string | null> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT n.id FROM environment_deploys AS n JOIN environment_deploys AS d ON d.id = $1
     WHERE n.environment_id = $2 AND n.channel = $3 AND n.state IN ('queued', 'ready') AND (n.created_at, n.id) > (d.created_at, d.id)
     ORDER BY n.created_at DESC, n.id DESC LIMIT 1`,
    [id, environmentId, channel],
  );
  return rows[0]?.id ?? null;
}

/** The largest priority of the jobs with a serial key, behind which another one must wait; 0 without any. Plan: a scan of the small table of jobs. */
export async function selectLastPriority(client: Client, jobSchema: string, serialKey: string): Promise<number> {
  const { rows } = await client.query<{ priority: number }>(
    `SELECT coalesce(max(priority), 0)::int AS priority FROM ${jobSchema}.jobs WHERE queue_name = $1`,
    [serialKey],
  );
  return rows[0]!.priority;
}

/** Deploys that no process works on: their job was lost, or gave up. */
export async function selectLostDeploys(client: Client, jobSchema: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT d.id FROM environment_deploys AS d WHERE d.ended_at IS NULL AND d.created_at < now() - interval '1 minute' AND NOT EXISTS (
       SELECT FROM ${jobSchema}.jobs AS j WHERE j.key = 'deploy:' || d.id AND (j.attempts < j.max_attempts OR j.locked_at IS NOT NULL))`,
  );
  return rows.map(({ id }) => id);
}
