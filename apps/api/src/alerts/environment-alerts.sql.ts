import type { AlertEvidence, CrashesCondition } from '@palestra/protocol';
import type pg from 'pg';
import type { FiringRow, StoredAlert } from './alert.sql.ts';

type Client = Pick<pg.Pool, 'query'>;

/** A hosted environment whose instances fail, or for which the alert fires. */
export interface CrashingEnvironment {
  id: string;
  /** `owner/name` */
  name: string;
  /** Of the version that failed most: instances that failed within the window. */
  failed: number;
  /** Null without a failed instance, and for a version that was deleted. */
  version: number | null;
  /** Why the last one failed. */
  detail: string | null;
  firing: boolean;
}

/** Environments of one round. */
const MOST = 200;

/** Failures before the alert was made are no news. Plan: environments_org_id_idx, environment_instances_environment_id_created_at_idx. */
const CRASHING = `
  SELECT e.id, e.owner || '/' || e.name AS name, COALESCE(c.failed, 0)::int AS failed, c.version, c.detail, COALESCE(s.firing, false) AS firing
  FROM environments e
  LEFT JOIN alert_environment_states s ON s.alert_id = $2 AND s.environment_id = e.id
  LEFT JOIN LATERAL (
    SELECT count(*) AS failed, max(v.number) AS version, (array_agg(i.detail ORDER BY i.stopped_at DESC))[1] AS detail
    FROM environment_instances i LEFT JOIN environment_versions v ON v.id = i.version_id
    WHERE i.environment_id = e.id AND i.state = 'failed' AND i.stopped_at > greatest(now() - $3::int * interval '1 minute', $6::timestamptz)
    GROUP BY i.version_id ORDER BY count(*) DESC, max(i.stopped_at) DESC LIMIT 1) c ON true
  WHERE e.org_id = $1 AND (e.hosting IS NOT NULL OR s.firing) AND ($4::text IS NULL OR e.owner || '/' || e.name = $4)
    AND (COALESCE(c.failed, 0) >= $5 OR COALESCE(s.firing, false))
  ORDER BY e.id LIMIT ${MOST}`;

export async function selectCrashing(pool: Client, alert: StoredAlert, condition: CrashesCondition): Promise<CrashingEnvironment[]> {
  const { minutes, environment, count } = condition;
  return (await pool.query<CrashingEnvironment>(CRASHING, [alert.org_id, alert.id, minutes, environment, count, alert.since])).rows;
}

/**
 * Adds an alert on crash loops to each organisation that hosts its first environment: once, so that a member can delete it. Instances that failed
 * just before count too. Plan: Seq Scan of organisations, environments_org_id_idx.
 */
export async function insertCrashAlerts(pool: Client, name: string, condition: CrashesCondition): Promise<void> {
  await pool.query(
    `WITH marked AS (
       UPDATE organisations AS o SET has_crash_alert = true
       WHERE NOT has_crash_alert AND EXISTS (SELECT FROM environments AS e WHERE e.org_id = o.id AND e.hosting IS NOT NULL) RETURNING o.id)
     INSERT INTO alerts (org_id, name, condition, author, since)
     SELECT id, $1, $2::jsonb, 'Palestra', now() - $3::int * interval '1 minute' FROM marked`,
    [name, JSON.stringify(condition), condition.minutes],
  );
}

/** Stores a change. False when the alert changed or was deleted meanwhile, or another process stored it. Plan: primary keys. */
export async function storeEnvironmentState(
  client: Client,
  { id, org_id, since }: Pick<StoredAlert, 'id' | 'org_id' | 'since'>,
  environmentId: string,
  firing: boolean,
  evidence: AlertEvidence,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `WITH held AS MATERIALIZED (SELECT id FROM alerts WHERE id = $1 AND since = $4 FOR KEY SHARE)
     INSERT INTO alert_environment_states AS s (alert_id, environment_id, org_id, firing, since, evidence)
     SELECT held.id, $2, $3, $5, now(), $6::jsonb FROM held
     ON CONFLICT (alert_id, environment_id) DO UPDATE SET firing = excluded.firing, since = excluded.since, evidence = excluded.evidence
     WHERE s.firing IS DISTINCT FROM excluded.firing`,
    [id, environmentId, org_id, since, firing, JSON.stringify(evidence)],
  );
  return rowCount === 1;
}

/** Hosted environments in which alerts fire, newest first. Plan: alert_environment_states_org_id_idx. */
export async function selectFiringEnvironments(pool: Client, orgId: string): Promise<FiringRow[]> {
  const { rows } = await pool.query<FiringRow>(
    `SELECT s.alert_id, a.name AS alert_name, NULL AS run_id, NULL AS run_name, e.owner || '/' || e.name AS environment, s.since, s.evidence
     FROM alert_environment_states s JOIN alerts a ON a.id = s.alert_id JOIN environments e ON e.id = s.environment_id
     WHERE s.org_id = $1 AND s.firing ORDER BY s.since DESC, s.alert_id LIMIT 1000`,
    [orgId],
  );
  return rows;
}
