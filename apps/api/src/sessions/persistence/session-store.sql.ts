import type pg from 'pg';
import { MicroBatcher } from '@palestra/kit';
import { type JsonObject, parseJson, stringifyJson } from '@palestra/protocol';
import type { Recording, SessionActivity, SessionFailure, SessionRecord, SessionStore, SlotLimits } from '@palestra/session';
import { isRefusedValue } from '../../platform/database/database-errors.ts';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import type { AesSecretBox } from '../../platform/secret-box.ts';

/**
 * Sessions in PostgreSQL. Inserts, updates and touches that come together share one statement each. Every plan below is a nested loop over the
 * primary key (`Function Scan on unnest -> Index Scan using sessions_pkey`), so the cost does not grow with the number of sessions. Every
 * statement can be repeated when its answer was lost: `written_by` and the version show whether a write was our own.
 */
interface Column {
  name: string;
  /** Element type of the array for `unnest`. */
  type: 'text' | 'int' | 'float8' | 'bytea';
  /** Milliseconds in memory, a timestamp in the table. */
  time?: true;
  of: (record: SessionRecord) => unknown;
}

const text = (value: object | null): string | null => (value === null ? null : stringifyJson(value));

/** The columns that an update writes. */
const CHANGING: Column[] = [
  { name: 'version_id', type: 'text', of: (record) => record.versionId },
  { name: 'env', type: 'text', of: (record) => record.env },
  { name: 'task', type: 'text', of: (record) => text(record.task) },
  { name: 'state', type: 'text', of: (record) => record.state },
  { name: 'version', type: 'int', of: (record) => record.version },
  { name: 'ref', type: 'text', of: (record) => text(record.ref) },
  { name: 'failure', type: 'text', of: (record) => text(record.failure) },
  { name: 'failure_class', type: 'text', of: (record) => record.failureClass },
  { name: 'environment', type: 'text', of: (record) => record.environment },
  { name: 'owner_replica_id', type: 'text', of: (record) => record.ownerReplicaId },
  { name: 'written_by', type: 'text', of: (record) => record.writtenBy },
  { name: 'secrets', type: 'bytea', of: (record) => record.secrets && Buffer.from(record.secrets) },
  { name: 'recording', type: 'text', of: (record) => text(record.recording) },
  { name: 'forked_from', type: 'text', of: (record) => record.forkedFrom },
  { name: 'forked_at_call', type: 'int', of: (record) => record.forkedAtCall },
  { name: 'queued_at', type: 'float8', time: true, of: (record) => record.queuedAt },
  { name: 'waiting_on', type: 'text', of: (record) => record.waitingOn },
  { name: 'slot_limits', type: 'text', of: (record) => record.slotLimits && JSON.stringify(record.slotLimits) },
  { name: 'admitted_at', type: 'float8', time: true, of: (record) => record.admittedAt },
  { name: 'heartbeat_timeout_ms', type: 'int', of: (record) => record.heartbeatTimeoutMs },
  { name: 'idle_timeout_ms', type: 'int', of: (record) => record.idleTimeoutMs },
  { name: 'last_seen_at', type: 'float8', time: true, of: (record) => record.lastSeenAt },
  { name: 'last_request_at', type: 'float8', time: true, of: (record) => record.lastRequestAt },
  { name: 'ended_at', type: 'float8', time: true, of: (record) => record.endedAt },
];
const ALL: Column[] = [
  { name: 'sid', type: 'text', of: (record) => record.sid },
  ...CHANGING,
  { name: 'org_id', type: 'text', of: (record) => record.orgId },
  { name: 'user_id', type: 'text', of: (record) => record.userId },
  { name: 'key_id', type: 'text', of: (record) => record.keyId },
  { name: 'created_at', type: 'float8', time: true, of: (record) => record.createdAt },
];

const source = ({ name, time }: Column, from: string): string => (time ? `to_timestamp(${from}.${name} / 1000)` : `${from}.${name}`);
const arrays = (columns: Column[], first: number) => columns.map(({ type }, index) => `$${first + index}::${type}[]`).join(', ');
const names = (columns: Column[]) => columns.map(({ name }) => name).join(', ');
/** A session expires when either of its timeouts ends. This is the only place that computes the time. */
const EXPIRES_AT = (from: string) => `CASE WHEN ${from}.ended_at IS NULL THEN to_timestamp(least(
  ${from}.last_seen_at + ${from}.heartbeat_timeout_ms, ${from}.last_request_at + ${from}.idle_timeout_ms) / 1000) END`;

const SELECT = `SELECT ${ALL.map((column) => (column.time ? `extract(epoch from ${column.name}) * 1000 AS ${column.name}` : column.name)).join(', ')}
  FROM sessions`;

/**
 * Whether a commit must wait for the disk. A crash of PostgreSQL may lose a session before its episode is open, and the end of a setup: the
 * client or the next request then repeats the step.
 */
const needsDisk = ({ ref, state }: SessionRecord): boolean => ref !== null && state !== 'ready';
const COMMIT = `WITH commit AS MATERIALIZED (SELECT set_config('synchronous_commit', $1, true))`;

const INSERT = `
  ${COMMIT}
  INSERT INTO sessions (${names(ALL)}, expires_at)
  SELECT ${ALL.map((column) => source(column, 'n')).join(', ')}, ${EXPIRES_AT('n')}
  FROM commit, unnest(${arrays(ALL, 2)}) AS n(${names(ALL)})
  ON CONFLICT (sid) DO UPDATE SET written_by = EXCLUDED.written_by
    WHERE sessions.version = EXCLUDED.version AND sessions.written_by = EXCLUDED.written_by AND sessions.created_at = EXCLUDED.created_at
  RETURNING sid`;

const UPDATE = `
  ${COMMIT}
  UPDATE sessions AS s SET
    ${CHANGING.map((column) => `${column.name} = ${source(column, 'n')}`).join(', ')},
    expires_at = ${EXPIRES_AT('n')},
    unbound_ended_at = CASE WHEN n.ref IS NULL THEN to_timestamp(n.ended_at / 1000) END
  FROM commit, unnest($2::int[], $3::text[], ${arrays(CHANGING, 4)}) AS n(ord, sid, ${names(CHANGING)})
  WHERE s.sid = n.sid AND (s.version = n.version - 1 OR (s.version = n.version AND s.written_by = n.written_by))
  RETURNING n.ord`;

const TOUCH = `
  UPDATE sessions AS s SET
    last_seen_at = greatest(s.last_seen_at, n.seen_at), last_request_at = greatest(s.last_request_at, n.request_at),
    expires_at = CASE WHEN s.ended_at IS NULL THEN least(
      greatest(s.last_seen_at, n.seen_at) + s.heartbeat_timeout_ms * interval '1 ms',
      greatest(s.last_request_at, n.request_at) + s.idle_timeout_ms * interval '1 ms') END
  FROM (SELECT sid, to_timestamp(seen_at / 1000) AS seen_at, to_timestamp(request_at / 1000) AS request_at
        FROM unnest($1::text[], $2::float8[], $3::float8[]) AS t(sid, seen_at, request_at)) AS n
  WHERE s.sid = n.sid
  RETURNING s.sid, s.version`;

/** Index Scan using sessions_expires_at_idx: reads only expired rows. */
const FIND_IDLE = `${SELECT} WHERE expires_at < to_timestamp($1::float8 / 1000) ORDER BY expires_at LIMIT $2`;
/** Index Scan using sessions_live_owner_idx, anti-joined with the few rows of session_replicas. */
const FIND_ORPHANS = `${SELECT} WHERE ended_at IS NULL AND owner_replica_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM session_replicas AS r WHERE r.id = owner_replica_id AND r.seen_at > now() - $2 * interval '1 ms') LIMIT $1`;
/** Index Scan using sessions_live_owner_idx. */
const FIND_OWNED = `${SELECT} WHERE ended_at IS NULL AND owner_replica_id = $1`;
/** Index Scan using sessions_unbound_ended_at_idx; for the dependent rows, Index Scans of the primary keys. */
const PURGE = `
  WITH gone AS (DELETE FROM sessions WHERE unbound_ended_at < to_timestamp($1::float8 / 1000) RETURNING sid),
    turns AS (DELETE FROM text_turns WHERE sid = ANY(ARRAY(SELECT sid FROM gone)))
  DELETE FROM text_sessions WHERE sid = ANY(ARRAY(SELECT sid FROM gone))`;

type Row = Record<string, string | null> & { secrets: Buffer | null; version: number } & Record<
    'heartbeat_timeout_ms' | 'idle_timeout_ms' | 'forked_at_call',
    number
  >;

const json = <T>(value: string | null | undefined): T | null => (value == null ? null : (parseJson(value) as T));
const time = (value: string | null | undefined): number | null => (value == null ? null : Number(value));

export function toSessionRecord(row: Row): SessionRecord {
  return {
    sid: row['sid']!,
    orgId: row['org_id']!,
    userId: row['user_id']!,
    keyId: row['key_id'] ?? null,
    versionId: row['version_id'] ?? null,
    env: row['env'] ?? null,
    task: json<JsonObject>(row['task']),
    state: row['state'] as SessionRecord['state'],
    version: row.version,
    ref: json<JsonObject>(row['ref']),
    failure: json<SessionFailure>(row['failure']),
    failureClass: row['failure_class'] as SessionRecord['failureClass'],
    environment: row['environment'] ?? null,
    ownerReplicaId: row['owner_replica_id'] ?? null,
    writtenBy: row['written_by'] ?? '',
    secrets: row.secrets,
    recording: json<Recording>(row['recording']),
    forkedFrom: row['forked_from'] ?? null,
    forkedAtCall: row.forked_at_call,
    queuedAt: time(row['queued_at']),
    waitingOn: row['waiting_on'] ?? null,
    slotLimits: row['slot_limits'] == null ? null : (JSON.parse(row['slot_limits']) as SlotLimits),
    admittedAt: time(row['admitted_at']),
    heartbeatTimeoutMs: row.heartbeat_timeout_ms,
    idleTimeoutMs: row.idle_timeout_ms,
    createdAt: Number(row['created_at']),
    lastSeenAt: Number(row['last_seen_at']),
    lastRequestAt: Number(row['last_request_at']),
    endedAt: time(row['ended_at']),
  };
}

const synchronous = (records: SessionRecord[]): string => (records.some(needsDisk) ? 'on' : 'off');

/** Statements of a kind run one at a time, and requests meanwhile share the next one: the cost is per statement, not per row. */
const BATCH = { maxItems: 500, maxAgeMs: 0, maxQueued: 50_000, concurrency: 1, isOfItem: isRefusedValue };
/** No request waits until the end of a setup is stored, so it shares the statement of the next change, or is written 10 ms later. */
const UPDATES = { ...BATCH, maxAgeMs: 10 };

export class SqlSessionStore implements SessionStore {
  readonly #pool: pg.Pool;
  readonly #leaseMs: number;
  readonly #inserts: MicroBatcher<SessionRecord, boolean>;
  readonly #updates: MicroBatcher<SessionRecord, boolean>;

  /** `box`: secrets are written under its current key, also when this process holds them under an older one. */
  constructor(
    pool: pg.Pool,
    leaseMs: number,
    readonly box: Pick<AesSecretBox, 'renew'>,
  ) {
    this.#pool = pool;
    this.#leaseMs = leaseMs;
    this.#inserts = new MicroBatcher({ ...BATCH, flush: (records) => this.#insertAll(records) });
    this.#updates = new MicroBatcher({ ...UPDATES, flush: (records) => this.#updateAll(records) });
  }

  async find(sid: string): Promise<SessionRecord | null> {
    const rows = await this.#query<Row>('session_find', `${SELECT} WHERE sid = $1`, [sid]);
    return rows[0] === undefined ? null : toSessionRecord(rows[0]);
  }

  insert(record: SessionRecord): Promise<boolean> {
    return this.#inserts.add(this.#renewed(record));
  }

  update(record: SessionRecord): Promise<boolean> {
    return this.#updates.add(this.#renewed(record), record.state !== 'ready');
  }

  #renewed(record: SessionRecord): SessionRecord {
    const { secrets } = record;
    return secrets === null ? record : { ...record, secrets: this.box.renew(secrets, record) };
  }

  async touch(seen: SessionActivity[]): Promise<{ sid: string; version: number }[]> {
    return this.#query('session_touch', TOUCH, [
      seen.map(({ sid }) => sid),
      seen.map(({ seenAt }) => seenAt),
      seen.map(({ requestAt }) => requestAt),
    ]);
  }

  async findIdle(now: number, limit: number): Promise<SessionRecord[]> {
    return (await this.#query<Row>('session_find_idle', FIND_IDLE, [now, limit])).map(toSessionRecord);
  }

  async findOrphans(limit: number): Promise<SessionRecord[]> {
    return (await this.#query<Row>('session_find_orphans', FIND_ORPHANS, [limit, this.#leaseMs])).map(toSessionRecord);
  }

  async findOwned(replicaId: string): Promise<SessionRecord[]> {
    return (await this.#query<Row>('session_find_owned', FIND_OWNED, [replicaId])).map(toSessionRecord);
  }

  async markCreateUndelivered(sid: string): Promise<void> {
    await this.#query('session_create_broken', 'UPDATE sessions SET create_broken = true WHERE sid = $1', [sid]);
  }

  async clearCreateUndelivered(sid: string): Promise<boolean> {
    const healed = 'UPDATE sessions SET create_broken = false WHERE sid = $1 AND create_broken RETURNING sid';
    return (await this.#query('session_heal_create', healed, [sid])).length > 0;
  }

  async purge(before: number): Promise<void> {
    await this.#query('session_purge', PURGE, [before]);
  }

  async #insertAll(records: SessionRecord[]): Promise<boolean[]> {
    // When two clients choose the same SID at the same moment, the first one gets it.
    const first = new Map(records.toReversed().map((record) => [record.sid, record]));
    const columns = [synchronous(records), ...ALL.map(({ of }) => [...first.values()].map(of))];
    const inserted = await this.#query<{ sid: string }>('session_insert', INSERT, columns);
    const taken = new Set(inserted.map(({ sid }) => sid));
    return records.map((record) => first.get(record.sid) === record && taken.has(record.sid));
  }

  async #updateAll(records: SessionRecord[]): Promise<boolean[]> {
    const updated = await this.#query<{ ord: number }>('session_update', UPDATE, [
      synchronous(records),
      records.map((_record, index) => index),
      records.map(({ sid }) => sid),
      ...CHANGING.map(({ of }) => records.map(of)),
    ]);
    const done = new Set(updated.map(({ ord }) => ord));
    return records.map((_record, index) => done.has(index));
  }

  #query<R extends object>(name: string, sql: string, values: unknown[]): Promise<R[]> {
    return retryDatabase(async () => (await this.#pool.query<R & pg.QueryResultRow>({ name, text: sql, values })).rows);
  }
}
