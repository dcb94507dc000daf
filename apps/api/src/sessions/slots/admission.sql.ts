import type pg from 'pg';
import type { AdmissionSnapshot, AdmissionStore, AdmittedSession, OpenSessionCount, SlotLimits } from '@palestra/session';
import { ADMITTED_RESERVATION_TIMEOUT_MS } from '@palestra/session';
import { atMost } from '../../platform/limits.ts';
import { retryDatabase } from '../../platform/database/database-retry.ts';

/** Only one process decides at a time. A round takes 1 to 2 ms. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtext('palestra admission'))`;
/** How many waiting sessions a round reads at most. */
const MAX_WAITING = 2_000;

/** Index Scan using sessions_waiting_idx, semi-joined with the few rows of session_replicas. */
const QUEUE = `
  SELECT sid, version_id, coalesce(key_id, user_id) AS holder, org_id, slot_limits, waiting_on, queued_at
  FROM sessions WHERE waiting_on IN (SELECT id FROM session_replicas WHERE seen_at > now() - $1 * interval '1 ms')`;
/** Reads the current quota by organisations_pkey, because it may have changed since the sessions began to wait. */
const readWaiting = (rows: string) => `
  SELECT sid, version_id, holder, org_id, slot_limits, waiting_on, extract(epoch from queued_at) * 1000 AS queued_at,
    (SELECT row_to_json(o) FROM (SELECT max_sessions FROM organisations WHERE id = CASE WHEN org_id ~ '^[0-9a-f-]{36}$' THEN org_id::uuid END) AS o) AS org
  FROM (${rows}) AS w`;
/** One row more than a round reads tells that there are more. */
const WAITING = readWaiting(`${QUEUE} ORDER BY queued_at LIMIT ${MAX_WAITING + 1}`);
/**
 * Those that a round reads when more wait. The oldest ones could all wait for full environments or be of keys at their quota, and would hide
 * sessions for which slots are free. So organisations take turns, in each its environments, and in each its keys. Of a key and an
 * environment the oldest are read, so their order stays. Three WindowAggs over all that wait: 50 ms for 10 000 sessions.
 */
const WAITING_IN_TURNS = readWaiting(`
  WITH queue AS (${QUEUE}),
  keys AS (SELECT *, row_number() OVER (PARTITION BY org_id, version_id, holder ORDER BY queued_at) AS of_key FROM queue),
  versions AS (SELECT *, row_number() OVER (PARTITION BY org_id, version_id ORDER BY of_key, queued_at) AS of_version FROM keys),
  orgs AS (SELECT *, row_number() OVER (PARTITION BY org_id ORDER BY of_version, queued_at) AS of_org FROM versions)
  SELECT * FROM orgs ORDER BY of_org, queued_at LIMIT ${MAX_WAITING}`);
/** HashAggregate over an Index Only Scan using sessions_slots_idx, which has only live sessions. */
const HELD = `
  SELECT version_id, owner_replica_id, coalesce(key_id, user_id) AS holder, org_id, count(*)::int AS count
  FROM sessions WHERE ended_at IS NULL AND admitted_at IS NOT NULL GROUP BY 1, 2, 3, 4`;
const REPLICAS = `SELECT id FROM session_replicas WHERE NOT draining AND seen_at > now() - $1 * interval '1 ms'`;
const ADMIT = `
  UPDATE sessions AS s SET admitted_at = now(), waiting_on = NULL, owner_replica_id = n.owner, version = version + 1,
    heartbeat_timeout_ms = least(heartbeat_timeout_ms, ${ADMITTED_RESERVATION_TIMEOUT_MS}), last_seen_at = now(), last_request_at = now(),
    expires_at = now() + least(heartbeat_timeout_ms, ${ADMITTED_RESERVATION_TIMEOUT_MS}) * interval '1 ms'
  FROM unnest($1::text[], $2::text[]) AS n(sid, owner) WHERE s.sid = n.sid AND s.waiting_on IS NOT NULL AND s.ended_at IS NULL`;
const NOT_WAITING = `SELECT sid FROM sessions WHERE sid = ANY($1::text[]) AND waiting_on IS NULL`;

/** HashAggregate over an Index Scan using sessions_live_idx, which has only live sessions. Runs once a second at most. */
const OPEN = `
  SELECT coalesce(key_id, user_id) AS holder, org_id AS "orgId", count(*)::int AS count FROM sessions WHERE ended_at IS NULL GROUP BY 1, 2`;

interface WaitingRow {
  sid: string;
  version_id: string;
  holder: string;
  org_id: string;
  slot_limits: string;
  waiting_on: string;
  queued_at: string;
  /** null for an organisation that is not stored. */
  org: { max_sessions: number | null } | null;
}
interface HeldRow {
  version_id: string;
  owner_replica_id: string | null;
  holder: string;
  org_id: string;
  count: number;
}

/** The queue and the slots in PostgreSQL (ADR 10). They are rows of `sessions`, so the end of a session always frees its slot. */
export class SqlAdmissionStore implements AdmissionStore {
  constructor(
    readonly pool: pg.Pool,
    readonly leaseMs: number,
    /** How many sessions an organisation may have open, in addition to the quota of its owners. Null: no limit. */
    readonly orgQuota: number | null,
  ) {}

  round(decide: (snapshot: AdmissionSnapshot) => AdmittedSession[]): Promise<void> {
    return retryDatabase(async () => {
      const client = await this.pool.connect();
      try {
        await client.query('BEGIN');
        await client.query(LOCK);
        const admitted = decide(await this.#snapshot(client));
        if (admitted.length > 0) {
          await client.query(ADMIT, [admitted.map(({ sid }) => sid), admitted.map(({ ownerReplicaId }) => ownerReplicaId)]);
        }
        await client.query('COMMIT');
        client.release();
      } catch (error) {
        // The state of the connection is unknown, so close it.
        client.release(true);
        throw error;
      }
    });
  }

  async countOpen(): Promise<OpenSessionCount[]> {
    return retryDatabase(async () => (await this.pool.query<OpenSessionCount>(OPEN)).rows);
  }

  async findAdmittedOrEnded(sids: string[]): Promise<string[]> {
    if (sids.length === 0) return [];
    return retryDatabase(async () => (await this.pool.query<{ sid: string }>(NOT_WAITING, [sids])).rows.map(({ sid }) => sid));
  }

  #limitsOf({ slot_limits: stored, org }: WaitingRow): SlotLimits {
    const limits = JSON.parse(stored) as SlotLimits;
    return org === null ? limits : { ...limits, org: atMost(this.orgQuota, org.max_sessions) };
  }

  async #snapshot(client: pg.PoolClient): Promise<AdmissionSnapshot> {
    let waiting = await client.query<WaitingRow>(WAITING, [this.leaseMs]);
    if (waiting.rows.length > MAX_WAITING) waiting = await client.query<WaitingRow>(WAITING_IN_TURNS, [this.leaseMs]);
    const held = await client.query<HeldRow>(HELD);
    const replicas = await client.query<{ id: string }>(REPLICAS, [this.leaseMs]);
    return {
      waiting: waiting.rows.map((row) => ({
        sid: row.sid,
        versionId: row.version_id,
        holder: row.holder,
        orgId: row.org_id,
        limits: this.#limitsOf(row),
        waitingOn: row.waiting_on,
        queuedAt: Number(row.queued_at),
      })),
      held: held.rows.map(({ version_id: versionId, owner_replica_id: ownerReplicaId, holder, org_id: orgId, count }) => ({
        versionId,
        ownerReplicaId,
        holder,
        orgId,
        count,
      })),
      replicas: replicas.rows.map(({ id }) => id),
    };
  }
}
