import type pg from 'pg';
import type { EndedSessions } from './canary.ts';

/** Sessions that are judged, at most. */
const LATEST = 100;

/**
 * The last ended sessions of a version since a time; null: since ever. A session is scored when a call of it had a reward. Plan: Index Scan
 * Backward using sessions_hosted_ended_idx, per session an Index Scan using session_calls_sid_seq_idx.
 */
const ENDED = `
  SELECT count(*)::int AS ended, (count(*) FILTER (WHERE failure_class IN ('environment', 'infrastructure')))::int AS failed,
    (count(*) FILTER (WHERE NOT scored))::int AS unscored
  FROM (
    SELECT s.failure_class, EXISTS (SELECT FROM session_calls AS c WHERE c.sid = s.sid AND c.reward IS NOT NULL) AS scored
    FROM sessions AS s
    WHERE s.version_id = $1 AND s.instance_id IS NOT NULL AND s.ended_at IS NOT NULL AND s.ended_at > coalesce($2::timestamptz, '-infinity')
    ORDER BY s.ended_at DESC LIMIT ${LATEST}) AS l`;

export async function selectEnded(pool: Pick<pg.Pool, 'query'>, versionId: string, since: Date | null): Promise<EndedSessions> {
  const { rows } = await pool.query<EndedSessions>({ name: 'canary_ended', text: ENDED, values: [versionId, since] });
  return rows[0]!;
}
