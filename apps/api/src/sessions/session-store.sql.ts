import type pg from 'pg';
import { MicroBatcher } from '@palestra/kit';
import { parseJson, stringifyJson } from '@palestra/protocol';
import type { SessionFailure, SessionRecord, SessionStore } from '@palestra/session';
import { asStoreError } from './store-errors.ts';

/**
 * Sessions in PostgreSQL. Inserts, updates and touches of the same moment go in one statement each; every plan below is a
 * nested loop over the primary key (`Function Scan on unnest -> Index Scan using sessions_pkey`), so its cost does not grow with
 * the number of stored sessions.
 */
const COLUMNS = `sid, org_id, user_id, key_id, version_id, env, task, state, version, ref, failure, failure_class, idle_timeout_ms,
  extract(epoch from created_at) * 1000 AS created_at, extract(epoch from last_seen_at) * 1000 AS last_seen_at,
  extract(epoch from ended_at) * 1000 AS ended_at`;

/** `expires_at` and `unbound_ended_at` follow from the rest, here and in one place only. */
const INSERT = `
  INSERT INTO sessions (sid, org_id, user_id, key_id, version_id, state, version, idle_timeout_ms, created_at, last_seen_at, expires_at)
  SELECT sid, org_id, user_id, key_id, version_id, state, version, idle_timeout_ms, at, at, at + idle_timeout_ms * interval '1 ms'
  FROM (SELECT sid, org_id, user_id, key_id, version_id, state, version, idle_timeout_ms, to_timestamp(at / 1000) AS at
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[], $9::float8[])
          AS n(sid, org_id, user_id, key_id, version_id, state, version, idle_timeout_ms, at)) AS n
  ON CONFLICT DO NOTHING RETURNING sid`;

const UPDATE = `
  UPDATE sessions AS s SET
    version_id = n.version_id, env = n.env, task = n.task, state = n.state, version = n.version, ref = n.ref, failure = n.failure,
    failure_class = n.failure_class, idle_timeout_ms = n.idle_timeout_ms, last_seen_at = to_timestamp(n.last_seen_at / 1000),
    ended_at = to_timestamp(n.ended_at / 1000),
    expires_at = CASE WHEN n.ended_at IS NULL THEN to_timestamp((n.last_seen_at + n.idle_timeout_ms) / 1000) END,
    unbound_ended_at = CASE WHEN n.ref IS NULL THEN to_timestamp(n.ended_at / 1000) END
  FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[], $9::text[], $10::text[],
              $11::int[], $12::float8[], $13::float8[])
    AS n(ord, sid, version_id, env, task, state, version, ref, failure, failure_class, idle_timeout_ms, last_seen_at, ended_at)
  WHERE s.sid = n.sid AND s.version = n.version - 1
  RETURNING n.ord`;

const TOUCH = `
  UPDATE sessions AS s SET
    last_seen_at = greatest(s.last_seen_at, to_timestamp(n.at / 1000)),
    expires_at = CASE WHEN s.ended_at IS NULL
      THEN greatest(s.last_seen_at, to_timestamp(n.at / 1000)) + s.idle_timeout_ms * interval '1 ms' END
  FROM unnest($1::text[], $2::float8[]) AS n(sid, at)
  WHERE s.sid = n.sid
  RETURNING s.sid, s.version`;

/** Index Scan using sessions_expires_at_idx: reads the expired rows only. */
const FIND_IDLE = `SELECT ${COLUMNS} FROM sessions WHERE expires_at < to_timestamp($1::float8 / 1000) ORDER BY expires_at LIMIT $2`;
/** Index Scan using sessions_unbound_ended_at_idx. */
const PURGE = `DELETE FROM sessions WHERE unbound_ended_at < to_timestamp($1::float8 / 1000)`;

interface Row {
  sid: string;
  org_id: string;
  user_id: string;
  key_id: string | null;
  version_id: string | null;
  env: string | null;
  task: string | null;
  state: SessionRecord['state'];
  version: number;
  ref: string | null;
  failure: string | null;
  failure_class: SessionRecord['failureClass'];
  idle_timeout_ms: number;
  created_at: string;
  last_seen_at: string;
  ended_at: string | null;
}

const json = <T>(text: string | null): T | null => (text === null ? null : (parseJson(text) as T));
const text = (value: object | null): string | null => (value === null ? null : stringifyJson(value));

function toRecord(row: Row): SessionRecord {
  return {
    sid: row.sid,
    orgId: row.org_id,
    userId: row.user_id,
    keyId: row.key_id,
    versionId: row.version_id,
    env: row.env,
    task: json(row.task),
    state: row.state,
    version: row.version,
    ref: json(row.ref),
    failure: json<SessionFailure>(row.failure),
    failureClass: row.failure_class,
    idleTimeoutMs: row.idle_timeout_ms,
    createdAt: Number(row.created_at),
    lastSeenAt: Number(row.last_seen_at),
    endedAt: row.ended_at === null ? null : Number(row.ended_at),
  };
}

/** One statement of a kind at a time: what comes meanwhile makes the next one larger, and waking PostgreSQL is what costs. */
const BATCH = { maxItems: 500, maxAgeMs: 0, maxQueued: 50_000, concurrency: 1 };

export class SqlSessionStore implements SessionStore {
  readonly #pool: pg.Pool;
  readonly #inserts: MicroBatcher<SessionRecord, boolean>;
  readonly #updates: MicroBatcher<SessionRecord, boolean>;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    this.#inserts = new MicroBatcher({ ...BATCH, flush: (records) => this.#insertAll(records) });
    this.#updates = new MicroBatcher({ ...BATCH, flush: (records) => this.#updateAll(records) });
  }

  async find(sid: string): Promise<SessionRecord | null> {
    const rows = await this.#query<Row>('session_find', `SELECT ${COLUMNS} FROM sessions WHERE sid = $1`, [sid]);
    return rows[0] === undefined ? null : toRecord(rows[0]);
  }

  insert(record: SessionRecord): Promise<boolean> {
    return this.#inserts.add(record);
  }

  update(record: SessionRecord): Promise<boolean> {
    return this.#updates.add(record);
  }

  async touch(seen: { sid: string; at: number }[]): Promise<{ sid: string; version: number }[]> {
    return this.#query('session_touch', TOUCH, [seen.map(({ sid }) => sid), seen.map(({ at }) => at)]);
  }

  async findIdle(now: number, limit: number): Promise<SessionRecord[]> {
    return (await this.#query<Row>('session_find_idle', FIND_IDLE, [now, limit])).map(toRecord);
  }

  async purge(before: number): Promise<void> {
    await this.#query('session_purge', PURGE, [before]);
  }

  /** SIDs of one batch differ: the engine claims each SID once at a time. */
  async #insertAll(records: SessionRecord[]): Promise<boolean[]> {
    const inserted = await this.#query<{ sid: string }>('session_insert', INSERT, [
      records.map((record) => record.sid),
      records.map((record) => record.orgId),
      records.map((record) => record.userId),
      records.map((record) => record.keyId),
      records.map((record) => record.versionId),
      records.map((record) => record.state),
      records.map((record) => record.version),
      records.map((record) => record.idleTimeoutMs),
      records.map((record) => record.createdAt),
    ]);
    const taken = new Set(inserted.map(({ sid }) => sid));
    return records.map(({ sid }) => taken.delete(sid));
  }

  async #updateAll(records: SessionRecord[]): Promise<boolean[]> {
    const updated = await this.#query<{ ord: number }>('session_update', UPDATE, [
      records.map((_record, index) => index),
      records.map((record) => record.sid),
      records.map((record) => record.versionId),
      records.map((record) => record.env),
      records.map((record) => text(record.task)),
      records.map((record) => record.state),
      records.map((record) => record.version),
      records.map((record) => text(record.ref)),
      records.map((record) => text(record.failure)),
      records.map((record) => record.failureClass),
      records.map((record) => record.idleTimeoutMs),
      records.map((record) => record.lastSeenAt),
      records.map((record) => record.endedAt),
    ]);
    const done = new Set(updated.map(({ ord }) => ord));
    return records.map((_record, index) => done.has(index));
  }

  async #query<R extends object>(name: string, sql: string, values: unknown[]): Promise<R[]> {
    try {
      return (await this.#pool.query<R & pg.QueryResultRow>({ name, text: sql, values })).rows;
    } catch (error) {
      throw asStoreError(error);
    }
  }
}
