import type { Artifact } from '@palestra/hosting';
import type { HostingSettings } from '@palestra/protocol';
import type pg from 'pg';

export interface StoredSpec {
  version_id: string;
  environment_id: string;
  org_id: string;
  environment: string;
  provider: string;
  artifact: Artifact;
  settings: HostingSettings | null;
}

const OF_VERSION = `v.id AS version_id, v.environment_id, e.org_id, e.owner || '/' || e.name AS environment, v.artifact, e.hosting AS settings`;

/** Null when the instance ended, or its version was deleted. Primary keys only. */
export async function selectSpec(pool: Pick<pg.Pool, 'query'>, id: string): Promise<StoredSpec | null> {
  const { rows } = await pool.query<StoredSpec>({
    name: 'instance_spec',
    text: `SELECT i.provider, ${OF_VERSION}
      FROM environment_instances AS i JOIN environment_versions AS v ON v.id = i.version_id JOIN environments AS e ON e.id = v.environment_id
      WHERE i.id = $1 AND i.state = 'starting' AND v.artifact IS NOT NULL`,
    values: [id],
  });
  return rows[0] ?? null;
}

/** Null when the version was deleted, or is not built. Primary keys only. */
export async function selectVersionSpec(pool: Pick<pg.Pool, 'query'>, versionId: string): Promise<StoredSpec | null> {
  const { rows } = await pool.query<StoredSpec>({
    name: 'version_spec',
    text: `SELECT v.provider, ${OF_VERSION} FROM environment_versions AS v JOIN environments AS e ON e.id = v.environment_id
      WHERE v.id = $1 AND v.provider IS NOT NULL AND v.artifact IS NOT NULL`,
    values: [versionId],
  });
  return rows[0] ?? null;
}

/**
 * The instance serves one session: of a version that a deploy tests none, because the test has used it. Call before it can become ready.
 */
export async function markSingle(pool: Pick<pg.Pool, 'query'>, id: string): Promise<void> {
  const text = `UPDATE environment_instances AS i SET sessions_left = CASE WHEN EXISTS (
      SELECT FROM environment_versions AS v JOIN environment_deploys AS d ON d.id = v.deploy_id
      WHERE v.id = i.version_id AND d.state IN ('building', 'verifying')) THEN 0 ELSE 1 END
    WHERE i.id = $1 AND i.state = 'starting' AND i.sessions_left IS NULL`;
  await pool.query({ name: 'instance_single', text, values: [id] });
}
