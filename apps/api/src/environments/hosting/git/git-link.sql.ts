import type pg from 'pg';

type Client = Pick<pg.Pool, 'query'>;
/** Webhooks whose digests are kept. */
const KEPT = 200;

/** Keeps the digest of a webhook; false when it was kept before: a replay. */
export async function rememberDelivery(client: Client, environmentId: string, digest: Buffer): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE environment_git_links SET deliveries = (array_append(deliveries, $2::bytea))[greatest(1, cardinality(deliveries) + 2 - ${KEPT}):]
     WHERE environment_id = $1 AND NOT ($2::bytea = ANY(deliveries))`,
    [environmentId, digest],
  );
  return rowCount === 1;
}

/** So that the git server may send it again. */
export async function forgetDelivery(client: Client, environmentId: string, digest: Buffer): Promise<void> {
  await client.query('UPDATE environment_git_links SET deliveries = array_remove(deliveries, $2::bytea) WHERE environment_id = $1', [
    environmentId,
    digest,
  ]);
}

export async function markPushed(client: Client, environmentId: string): Promise<void> {
  await client.query('UPDATE environment_git_links SET pushed_at = now() WHERE environment_id = $1', [environmentId]);
}

/** Whether a deploy of this source waits: it will fetch the newest commit. Plan: Index Scan using environment_deploys_environment_id_created_at_idx. */
export async function isQueued(client: Client, environmentId: string, source: object, channel: string | null): Promise<boolean> {
  const { rows } = await client.query<{ queued: boolean }>(
    `SELECT EXISTS (SELECT FROM environment_deploys
       WHERE environment_id = $1 AND state = 'queued' AND source = $2::jsonb AND channel IS NOT DISTINCT FROM $3) AS queued`,
    [environmentId, JSON.stringify(source), channel],
  );
  return rows[0]!.queued;
}

/** URLs of git repositories that the organisation has used or named, the newest first. */
export async function selectRemotes(client: Client, orgId: string, limit: number): Promise<string[]> {
  const { rows } = await client.query<{ url: string }>(
    `SELECT url FROM (
       SELECT url, created_at AS at FROM environment_git_links WHERE org_id = $1
       UNION ALL SELECT source ->> 'url', created_at FROM environment_deploys WHERE org_id = $1 AND source ->> 'kind' = 'git'
       UNION ALL SELECT external_github_url, updated_at FROM environments WHERE org_id = $1 AND external_github_url IS NOT NULL) AS r
     GROUP BY url ORDER BY max(at) DESC LIMIT $2`,
    [orgId, limit],
  );
  return rows.map(({ url }) => url);
}
