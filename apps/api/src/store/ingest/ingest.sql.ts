import type pg from 'pg';
import { MESSAGE_FLAGS, messageFlags, type ReadEvent, type ReadMessage, type ReadStart } from '@palestra/rollouts';
import type { JsonObject, UnscoredFailure } from '@palestra/protocol';

/** Characters that the model wrote: assistant messages, tool calls and reasoning. */
const OUTPUT_CHARS = `sum(CASE WHEN type IN ('assistant_message', 'tool_call', 'reasoning')
      THEN char_length(COALESCE(content, '')) + CASE WHEN type = 'reasoning' THEN char_length(COALESCE(summary, '')) ELSE 0 END ELSE 0 END)`;

/**
 * Stores a batch in one statement, acknowledged after its commit. Idempotent on (rollout, event id): the first acknowledged event wins, and
 * only inserted rows change the counters, so that duplicates, any order and concurrent batches give the same numbers. derive.service.ts
 * computes all other values from these rows.
 *
 * Existing heads are locked in id order, so that batches cannot deadlock. Missing heads are inserted with all values of the batch, because
 * none of their messages can exist yet. If another batch inserts the same head at the same time, this statement skips the events of that
 * rollout (it is not in `handled`) and the caller repeats it for them. It also skips messages of sealed rollouts, whose event ids are in no
 * row: the caller looks for them in the transcript and passes the time of that seal ($6). This is safe because the head is locked, and
 * sealing locks it, too.
 *
 * Plan (EXPLAIN, 100 messages): function scans of jsonb_to_recordset; Nested Loop with Index Scan using rollout_heads_org_id_id_key; Insert
 * on rollout_messages, conflict arbiter its primary key, into one partition per row; HashAggregate over its RETURNING; Update on
 * rollout_heads by primary key. No table is scanned.
 */
const INGEST = `
WITH message AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($2::jsonb) AS m(
    event_id uuid, rollout_id uuid, index int, type text, name text, call_id text, content text, content_reference text,
    summary text, reward float8, is_finished boolean, metadata jsonb, extra jsonb, flags int, bytes int, blob_key text, sent_at bigint)
), start AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($3::jsonb) AS s(rollout_id uuid, run_seq int, flags int, raw jsonb)
), info AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($4::jsonb) AS i(rollout_id uuid, flags int, rollout_info jsonb, rollout_info_at jsonb)
), failure AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($5::jsonb) AS f(rollout_id uuid, failure_class text)
), checked AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($6::jsonb) AS c(rollout_id uuid, sealed_at timestamptz)
), sent AS (
  SELECT rollout_id, count(*)::int AS messages, count(*) FILTER (WHERE type = 'tool_call')::int AS calls, max(index) AS max_index,
    bool_or(is_finished) AS finished, bit_or(flags) AS flags, sum(bytes) AS bytes, ${OUTPUT_CHARS} AS output_chars
  FROM message GROUP BY rollout_id
), touched AS MATERIALIZED (
  SELECT rollout_id FROM sent UNION SELECT rollout_id FROM start UNION SELECT rollout_id FROM info UNION SELECT rollout_id FROM failure
), known AS MATERIALIZED (
  SELECT h.id, h.seq, h.day, h.run_seq, h.sealed_at FROM rollout_heads h
  WHERE h.org_id = $1 AND h.id = ANY(ARRAY(SELECT rollout_id FROM touched)) ORDER BY h.id FOR UPDATE
), open AS MATERIALIZED (
  SELECT k.id, k.seq, k.day FROM known k WHERE k.sealed_at IS NULL OR NOT EXISTS (SELECT FROM sent WHERE sent.rollout_id = k.id)
    OR EXISTS (SELECT FROM checked c WHERE c.rollout_id = k.id AND c.sealed_at = k.sealed_at)
), fresh AS (
  INSERT INTO rollout_heads (org_id, id, day, run_seq, messages, calls, max_index, finished, flags, bytes, output_chars, failure_class)
  SELECT $1, t.rollout_id, (now() AT TIME ZONE 'UTC')::date, s.run_seq, COALESCE(n.messages, 0), COALESCE(n.calls, 0), COALESCE(n.max_index, -1),
    COALESCE(n.finished, false), COALESCE(n.flags, 0) | COALESCE(s.flags, 0) | COALESCE(i.flags, 0), COALESCE(n.bytes, 0), COALESCE(n.output_chars, 0), f.failure_class
  FROM touched t LEFT JOIN start s USING (rollout_id) LEFT JOIN sent n USING (rollout_id) LEFT JOIN info i USING (rollout_id)
    LEFT JOIN failure f USING (rollout_id)
  WHERE NOT EXISTS (SELECT FROM known WHERE known.id = t.rollout_id)
  ORDER BY t.rollout_id
  ON CONFLICT (org_id, id) DO NOTHING
  RETURNING id, seq, day, run_seq
), place AS MATERIALIZED (
  SELECT id, seq, day FROM open UNION ALL SELECT id, seq, day FROM fresh
), inserted AS (
  INSERT INTO rollout_messages (day, rollout_seq, event_id, index, bytes, flags, is_finished, type, sent_at, reward, name, call_id, content,
    content_reference, summary, blob_key, metadata, extra)
  SELECT p.day, p.seq, m.event_id, m.index, m.bytes, m.flags, m.is_finished, m.type, m.sent_at, m.reward, m.name, m.call_id, m.content,
    m.content_reference, m.summary, m.blob_key, m.metadata, m.extra
  FROM message m JOIN place p ON p.id = m.rollout_id ORDER BY p.seq, m.event_id
  ON CONFLICT DO NOTHING
  RETURNING rollout_seq, event_id, index, type, is_finished, flags, bytes, content, summary
), delta AS (
  SELECT rollout_seq, count(*)::int AS messages, count(*) FILTER (WHERE type = 'tool_call')::int AS calls, max(index) AS max_index,
    bool_or(is_finished) AS finished, bit_or(flags) AS flags, sum(bytes) AS bytes, ${OUTPUT_CHARS} AS output_chars
  FROM inserted GROUP BY rollout_seq
), grown AS (
  UPDATE rollout_heads h SET
    run_seq = COALESCE(h.run_seq, s.run_seq),
    messages = h.messages + COALESCE(d.messages, 0),
    calls = h.calls + COALESCE(d.calls, 0),
    max_index = GREATEST(h.max_index, d.max_index),
    finished = h.finished OR COALESCE(d.finished, false),
    flags = h.flags | COALESCE(d.flags, 0) | COALESCE(s.flags, 0) | COALESCE(i.flags, 0),
    bytes = h.bytes + COALESCE(d.bytes, 0),
    output_chars = h.output_chars + COALESCE(d.output_chars, 0),
    failure_class = COALESCE(f.failure_class, h.failure_class),
    dirty = true,
    unsearched = h.unsearched OR COALESCE(d.messages, 0) > 0,
    unverified = true,
    verify_at = LEAST(h.verify_at, now()),
    unsealed = h.unsealed OR COALESCE(d.messages, 0) > 0,
    revision = h.revision + 1,
    last_at = now()
  FROM open k LEFT JOIN delta d ON d.rollout_seq = k.seq LEFT JOIN start s ON s.rollout_id = k.id LEFT JOIN info i ON i.rollout_id = k.id
    LEFT JOIN failure f ON f.rollout_id = k.id
  WHERE h.seq = k.seq AND (d.messages > 0 OR i.rollout_id IS NOT NULL OR f.failure_class IS DISTINCT FROM h.failure_class AND f.failure_class IS NOT NULL
    OR s.rollout_id IS NOT NULL)
  RETURNING h.run_seq
), before AS MATERIALIZED (
  SELECT rollout_seq, start, rollout_info FROM rollout_starts WHERE rollout_seq = ANY(ARRAY(
    SELECT seq FROM open WHERE id IN (SELECT rollout_id FROM start UNION ALL SELECT rollout_id FROM info)))
), meta AS (
  INSERT INTO rollout_starts (rollout_seq, start, rollout_info, rollout_info_at)
  SELECT p.seq, start.raw, info.rollout_info, info.rollout_info_at
  FROM start FULL JOIN info USING (rollout_id) JOIN place p ON p.id = rollout_id ORDER BY p.seq
  ON CONFLICT (rollout_seq) DO UPDATE SET
    start = CASE WHEN rollout_starts.start IS NULL THEN excluded.start ELSE COALESCE(excluded.start, '{}') || COALESCE((
      SELECT jsonb_object_agg(key, value) FROM jsonb_each(rollout_starts.start) WHERE value <> 'null'), '{}') END,
    rollout_info = COALESCE(rollout_starts.rollout_info, '{}') || COALESCE((
      SELECT jsonb_object_agg(key, value) FROM jsonb_each(excluded.rollout_info)
      WHERE (excluded.rollout_info_at->>key)::float8 >= COALESCE((rollout_starts.rollout_info_at->>key)::float8, '-Infinity')), '{}'),
    rollout_info_at = COALESCE(rollout_starts.rollout_info_at, '{}') || COALESCE((
      SELECT jsonb_object_agg(key, value) FROM jsonb_each(excluded.rollout_info_at)
      WHERE value::float8 >= COALESCE((rollout_starts.rollout_info_at->>key)::float8, '-Infinity')), '{}')
  RETURNING rollout_seq, start, rollout_info
), changed AS (
  SELECT p.id, (m.start IS DISTINCT FROM b.start) AS start, (m.rollout_info IS DISTINCT FROM b.rollout_info) AS info
  FROM meta m JOIN place p ON p.seq = m.rollout_seq LEFT JOIN before b USING (rollout_seq)
)
SELECT ARRAY(SELECT id::text FROM place) AS handled, ARRAY(SELECT event_id::text FROM inserted) AS inserted,
  ARRAY(SELECT id::text FROM changed WHERE start) AS started, ARRAY(SELECT id::text FROM changed WHERE info) AS informed,
  ARRAY(SELECT jsonb_build_object('seq', k.seq::text, 'rollout_id', k.id) FROM known k WHERE NOT EXISTS (SELECT FROM open WHERE open.id = k.id)) AS sealed,
  ARRAY(SELECT DISTINCT run_seq FROM (SELECT run_seq FROM fresh UNION ALL SELECT run_seq FROM grown UNION ALL SELECT run_seq FROM known) r WHERE run_seq IS NOT NULL) AS run_seqs`;

/** Messages that were not inserted and whose stored content differs from the sent content. Plan: primary key of rollout_messages. */
const CONFLICTS = `
SELECT m.event_id::text FROM jsonb_to_recordset($2::jsonb) AS m(event_id uuid, rollout_id uuid, index int, type text, content text, reward float8, call_id text)
JOIN rollout_heads h ON h.org_id = $1 AND h.id = m.rollout_id
JOIN rollout_messages x ON x.day = h.day AND x.rollout_seq = h.seq AND x.event_id = m.event_id
WHERE (x.index, x.type, x.content, x.reward, x.call_id) IS DISTINCT FROM (m.index, m.type, m.content, m.reward, m.call_id)`;

/** A start event with the run of its name. */
export interface ResolvedStart {
  event: ReadStart;
  runSeq: number;
}

/** A message whose body or images were stored as objects. `blobKey`: the object with the whole content, of `bodyBytes`. */
export type StoredMessage = ReadMessage & { blobKey?: string; bodyBytes?: number };

export interface IngestResult {
  /** Event ids of new messages. */
  inserted: Set<string>;
  /** Rollouts whose start event (`started`) or `rollout_info` (`informed`) had new values. */
  started: Set<string>;
  informed: Set<string>;
  /** Event ids of messages that exist with other content; the stored content stays. */
  conflicts: string[];
  /** Runs of all rollouts of the batch, also of unchanged ones. */
  runSeqs: number[];
}

/** A rollout that failed through the environment or the infrastructure: it is unscored, whatever rewards its messages have. */
export interface RolloutFailure {
  rolloutId: string;
  failureClass: UnscoredFailure;
}

/** A sealed rollout that received messages. */
export interface SealedHead {
  seq: string;
  rollout_id: string;
}

/** The transcript's part of repeated messages: time of the seal, their event ids, and ids of those with other content. */
export interface SealedMessages {
  sealed_at: string;
  eventIds: Set<string>;
  conflicts: string[];
}

/** Finds the sent messages that are sealed, by rollout id. May omit a rollout that was sealed again meanwhile. */
export type FindSealed = (
  client: Pick<pg.Pool, 'query'>,
  heads: readonly SealedHead[],
  messages: readonly MessageRow[],
) => Promise<Map<string, SealedMessages>>;

/** Result of `INGEST`. */
interface Stored {
  handled: string[];
  inserted: string[];
  started: string[];
  informed: string[];
  sealed: SealedHead[];
  run_seqs: number[];
}

/** Another batch that inserted the same rollout has committed by then, and no rollout is sealed so often. */
const MAX_ROUNDS = 5;

export async function storeBatch(
  pool: Pick<pg.Pool, 'query'>,
  orgId: string,
  starts: ResolvedStart[],
  events: readonly ReadEvent[],
  failures: readonly RolloutFailure[],
  findSealed: FindSealed,
): Promise<IngestResult> {
  const messages = events.filter((event) => event.kind === 'message').map(messageRow);
  let batch = {
    messages,
    starts: startRows(starts),
    infos: infoRows(events),
    failures: failures.map(({ rolloutId, failureClass }) => ({ rollout_id: rolloutId, failure_class: failureClass })),
    checked: [] as { rollout_id: string; sealed_at: string }[],
  };
  const result: IngestResult = { inserted: new Set(), started: new Set(), informed: new Set(), conflicts: [], runSeqs: [] };
  const sealedRows = new Set<MessageRow>();
  for (let round = 0; ; round += 1) {
    const { rows } = await pool.query<Stored>({
      name: 'rollouts-ingest',
      text: INGEST,
      values: [orgId, ...[batch.messages, batch.starts, batch.infos, batch.failures, batch.checked].map((part) => JSON.stringify(part))],
    });
    const { handled, inserted, started, informed, sealed, run_seqs } = rows[0]!;
    for (const id of inserted) result.inserted.add(id);
    for (const id of started) result.started.add(id);
    for (const id of informed) result.informed.add(id);
    result.runSeqs = [...new Set([...result.runSeqs, ...run_seqs])];
    const done = new Set(handled);
    const remaining = <T extends { rollout_id: string }>(part: T[]) => part.filter((row) => !done.has(row.rollout_id));
    batch = {
      messages: remaining(batch.messages),
      starts: remaining(batch.starts),
      infos: remaining(batch.infos),
      failures: remaining(batch.failures),
      checked: [],
    };
    if (Object.values(batch).every((part) => part.length === 0)) break;
    if (round === MAX_ROUNDS)
      throw new Error(`rollouts of a batch were inserted or sealed by other processes in each of ${MAX_ROUNDS} rounds`);
    if (sealed.length === 0) continue;
    const found = await findSealed(pool, sealed, batch.messages);
    for (const row of batch.messages) if (found.get(row.rollout_id)?.eventIds.has(row.event_id)) sealedRows.add(row);
    result.conflicts.push(...[...found.values()].flatMap(({ conflicts }) => conflicts));
    batch.messages = batch.messages.filter((row) => !sealedRows.has(row));
    batch.checked = [...found].map(([rollout_id, { sealed_at }]) => ({ rollout_id, sealed_at }));
  }
  const repeated = messages.filter((message) => !result.inserted.has(message.event_id) && !sealedRows.has(message));
  if (repeated.length > 0) {
    const { rows } = await pool.query<{ event_id: string }>(CONFLICTS, [orgId, JSON.stringify(repeated)]);
    result.conflicts.push(...rows.map((row) => row.event_id));
  }
  return result;
}

export type MessageRow = ReturnType<typeof messageRow>;

function messageRow(event: StoredMessage) {
  return {
    event_id: event.eventId,
    rollout_id: event.rolloutId,
    index: event.index,
    type: event.type,
    name: event.name,
    call_id: event.callId,
    content: event.content,
    content_reference: event.contentReference,
    summary: event.summary,
    reward: event.reward,
    is_finished: event.isFinished,
    metadata: Object.keys(event.metadata).length > 0 ? event.metadata : null,
    extra: event.extra,
    flags: messageFlags(event),
    bytes: (event.bodyBytes ?? Buffer.byteLength(event.content ?? '')) + Buffer.byteLength(event.summary ?? ''),
    blob_key: event.blobKey ?? null,
    sent_at: event.sentAt,
  };
}

/** A statement may change a row once: of several start events of a rollout the first wins, and later ones fill missing fields. */
function startRows(starts: ResolvedStart[]) {
  const rows = new Map<string, { rollout_id: string; run_seq: number; flags: number; raw: JsonObject }>();
  for (const { event, runSeq } of starts) {
    const flags = event.nonfinite ? MESSAGE_FLAGS.nonfinite : 0;
    const row = rows.get(event.rolloutId);
    if (row) row.raw = { ...event.raw, ...Object.fromEntries(Object.entries(row.raw).filter(([, value]) => value !== null)) };
    else rows.set(event.rolloutId, { rollout_id: event.rolloutId, run_seq: runSeq, flags, raw: event.raw });
  }
  return [...rows.values()];
}

/** One row per rollout: its updates and the start event's rollout_info, merged by key; the newest client time wins. */
function infoRows(events: readonly ReadEvent[]) {
  const merged = new Map<string, { info: JsonObject; at: Record<string, number>; flags: number }>();
  for (const { rolloutId, sentAt, info, nonfinite } of events.flatMap(infoOf).toSorted((a, b) => a.sentAt - b.sentAt)) {
    const row = merged.get(rolloutId) ?? { info: {}, at: {}, flags: 0 };
    Object.assign(row.info, info);
    for (const key of Object.keys(info)) row.at[key] = sentAt;
    if (nonfinite) row.flags = MESSAGE_FLAGS.nonfinite;
    merged.set(rolloutId, row);
  }
  return [...merged].map(([rolloutId, { info, at, flags }]) => ({ rollout_id: rolloutId, flags, rollout_info: info, rollout_info_at: at }));
}

function infoOf(event: ReadEvent): { rolloutId: string; sentAt: number; info: JsonObject; nonfinite: boolean }[] {
  if (event.kind === 'message') return [];
  const info = event.kind === 'update' ? event.rolloutInfo : event.raw.rollout_info;
  if (typeof info !== 'object' || info === null || Array.isArray(info)) return [];
  return [{ rolloutId: event.rolloutId, sentAt: event.sentAt, info: info as JsonObject, nonfinite: event.nonfinite }];
}
