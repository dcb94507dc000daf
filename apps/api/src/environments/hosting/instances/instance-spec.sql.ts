import type { Artifact } from '@palestra/hosting';
import type { HostingSettings } from '@palestra/protocol';
import type pg from 'pg';

export interface StoredSpec {
  id: string;
  version_id: string;
  environment_id: string;
  org_id: string;
  environment: string;
  provider: string;
  artifact: Artifact;
  settings: HostingSettings | null;
}

/** Null when the instance ended, or its version was deleted. Primary keys only. */
export async function selectSpec(pool: Pick<pg.Pool, 'query'>, id: string): Promise<StoredSpec | null> {
  const { rows } = await pool.query<StoredSpec>({
    name: 'instance_spec',
    text: `SELECT i.id, i.version_id, i.environment_id, i.org_id, e.owner || '/' || e.name AS environment, i.provider, v.artifact, e.hosting AS settings
      FROM environment_instances AS i JOIN environment_versions AS v ON v.id = i.version_id JOIN environments AS e ON e.id = v.environment_id
      WHERE i.id = $1 AND i.state = 'starting' AND v.artifact IS NOT NULL`,
    values: [id],
  });
  return rows[0] ?? null;
}
