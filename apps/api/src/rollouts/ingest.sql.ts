import type pg from 'pg';
import { factsOfInfo, factsOfStart, type ReadEvent, type ReadMessage, type ReadStart } from '@palestra/rollouts';
import type { JsonObject } from '@palestra/protocol';

/**
 * Stores a batch in one statement, acknowledged when it has committed. Idempotent on (organisation, event id): the first
 * acknowledged event wins, and only rows that were really inserted move the counters, so that duplicates, any order and
 * concurrent batches leave the same numbers. Rows of `rollouts` are locked in id order, so that batches cannot deadlock.
 *
 * Plan (EXPLAIN, 100 messages): Insert on rollout_messages from a function scan of jsonb_to_recordset, conflict arbiter
 * rollout_messages_pkey; HashAggregate over its RETURNING; Insert on rollouts from a merge of the three small sets, conflict
 * arbiter rollouts_pkey. No table is scanned.
 */
const INGEST = `
WITH message AS (
  SELECT * FROM jsonb_to_recordset($2::jsonb) AS m(
    event_id uuid, rollout_id uuid, index int, type text, name text, call_id text, content text, content_reference text,
    summary text, reward float8, is_finished boolean, metadata jsonb, extra jsonb, nonfinite boolean, sent_at bigint)
), start AS (
  SELECT * FROM jsonb_to_recordset($3::jsonb) AS s(
    rollout_id uuid, run_id uuid, rollout_name text, environment text, environment_id uuid, variant text, split text, step int,
    task_index int, stop text, turns int, reward float8, nonfinite boolean, raw jsonb)
), info AS (
  SELECT * FROM jsonb_to_recordset($4::jsonb) AS i(rollout_id uuid, step int, step_at bigint, task_index int,
    task_index_at bigint, stop text, rollout_info jsonb, rollout_info_at jsonb)
), failure AS (
  SELECT * FROM jsonb_to_recordset($5::jsonb) AS f(rollout_id uuid, failure_class text)
), inserted AS (
  INSERT INTO rollout_messages (org_id, event_id, rollout_id, index, type, name, call_id, content, content_reference, summary,
    reward, is_finished, metadata, extra, nonfinite, sent_at)
  SELECT $1, event_id, rollout_id, index, type, name, call_id, content, content_reference, summary, reward, is_finished, metadata,
    extra, nonfinite, sent_at
  FROM message ORDER BY event_id
  ON CONFLICT DO NOTHING
  RETURNING rollout_id, index, type, reward, is_finished, nonfinite,
    octet_length(COALESCE(content, '')) + octet_length(COALESCE(summary, '')) AS bytes
), delta AS (
  SELECT n.rollout_id, count(*)::int AS messages, count(*) FILTER (WHERE n.type = 'tool_call')::int AS calls,
    sum(n.reward) AS reward, max(n.reward) AS max_reward, max(n.index) AS max_index, bool_or(n.is_finished) AS finished,
    bool_or(n.nonfinite) AS nonfinite, sum(n.bytes) AS bytes
  FROM inserted n GROUP BY n.rollout_id
), meta AS (
  INSERT INTO rollout_meta (org_id, rollout_id, start, rollout_info, rollout_info_at)
  SELECT $1, rollout_id, start.raw, info.rollout_info, info.rollout_info_at FROM start FULL JOIN info USING (rollout_id) ORDER BY rollout_id
  ON CONFLICT (org_id, rollout_id) DO UPDATE SET
    start = COALESCE(rollout_meta.start, excluded.start),
    rollout_info = COALESCE(rollout_meta.rollout_info, '{}') || COALESCE((
      SELECT jsonb_object_agg(key, value) FROM jsonb_each(excluded.rollout_info)
      WHERE (excluded.rollout_info_at->>key)::float8 >= COALESCE((rollout_meta.rollout_info_at->>key)::float8, '-Infinity')), '{}'),
    rollout_info_at = COALESCE(rollout_meta.rollout_info_at, '{}') || COALESCE((
      SELECT jsonb_object_agg(key, value) FROM jsonb_each(excluded.rollout_info_at)
      WHERE value::float8 >= COALESCE((rollout_meta.rollout_info_at->>key)::float8, '-Infinity')), '{}')
), touched AS (
  SELECT rollout_id FROM delta UNION SELECT rollout_id FROM start UNION SELECT rollout_id FROM info UNION SELECT rollout_id FROM failure
), stored AS (
  INSERT INTO rollouts AS r (org_id, id, run_id, rollout_name, environment, environment_id, variant, split, step_start, step_info,
    step_info_at, task_index_start, task_index_info, task_index_info_at, reward, max_reward, num_messages, num_tool_calls, max_index, turns_reported, reward_reported,
    finished, stop, failure_class, nonfinite, bytes)
  SELECT $1, t.rollout_id, s.run_id, s.rollout_name, s.environment, s.environment_id, s.variant, s.split, s.step, i.step, i.step_at,
    s.task_index, i.task_index, i.task_index_at, d.reward, d.max_reward, COALESCE(d.messages, 0), COALESCE(d.calls, 0), COALESCE(d.max_index, -1),
    s.turns, s.reward, COALESCE(d.finished, false), COALESCE(s.stop, i.stop), f.failure_class, COALESCE(s.nonfinite, false) OR COALESCE(d.nonfinite, false), COALESCE(d.bytes, 0)
  FROM touched t LEFT JOIN start s USING (rollout_id) LEFT JOIN info i USING (rollout_id) LEFT JOIN delta d USING (rollout_id)
  LEFT JOIN failure f USING (rollout_id)
  ORDER BY t.rollout_id
  ON CONFLICT (org_id, id) DO UPDATE SET
    run_id = COALESCE(r.run_id, excluded.run_id),
    rollout_name = CASE WHEN r.run_id IS NULL THEN excluded.rollout_name ELSE r.rollout_name END,
    environment = CASE WHEN r.run_id IS NULL THEN excluded.environment ELSE r.environment END,
    environment_id = CASE WHEN r.run_id IS NULL THEN excluded.environment_id ELSE r.environment_id END,
    variant = CASE WHEN r.run_id IS NULL THEN excluded.variant ELSE r.variant END,
    split = CASE WHEN r.run_id IS NULL THEN excluded.split ELSE r.split END,
    step_start = CASE WHEN r.run_id IS NULL THEN excluded.step_start ELSE r.step_start END,
    task_index_start = CASE WHEN r.run_id IS NULL THEN excluded.task_index_start ELSE r.task_index_start END,
    turns_reported = CASE WHEN r.run_id IS NULL THEN excluded.turns_reported ELSE r.turns_reported END,
    reward_reported = CASE WHEN r.run_id IS NULL THEN excluded.reward_reported ELSE r.reward_reported END,
    stop = COALESCE(excluded.stop, r.stop),
    failure_class = COALESCE(excluded.failure_class, r.failure_class),
    step_info = CASE WHEN excluded.step_info_at >= COALESCE(r.step_info_at, excluded.step_info_at) THEN excluded.step_info ELSE r.step_info END,
    step_info_at = GREATEST(r.step_info_at, excluded.step_info_at),
    task_index_info = CASE WHEN excluded.task_index_info_at >= COALESCE(r.task_index_info_at, excluded.task_index_info_at)
      THEN excluded.task_index_info ELSE r.task_index_info END,
    task_index_info_at = GREATEST(r.task_index_info_at, excluded.task_index_info_at),
    reward = CASE WHEN excluded.reward IS NULL THEN r.reward ELSE COALESCE(r.reward, 0) + excluded.reward END,
    max_reward = GREATEST(r.max_reward, excluded.max_reward),
    num_messages = r.num_messages + excluded.num_messages,
    num_tool_calls = r.num_tool_calls + excluded.num_tool_calls,
    max_index = GREATEST(r.max_index, excluded.max_index),
    turns_counted = CASE WHEN excluded.num_messages > 0 THEN NULL ELSE r.turns_counted END,
    finished = r.finished OR excluded.finished,
    nonfinite = r.nonfinite OR excluded.nonfinite,
    bytes = r.bytes + excluded.bytes,
    updated_at = CASE WHEN excluded.num_messages > 0 OR r.run_id IS NULL OR excluded.step_info IS NOT NULL THEN now() ELSE r.updated_at END
  RETURNING run_id
)
SELECT (SELECT count(*)::int FROM inserted) AS inserted, ARRAY(SELECT DISTINCT run_id::text FROM stored WHERE run_id IS NOT NULL) AS run_ids`;

/** A start event with the ids that its names stand for. */
export interface ResolvedStart {
  event: ReadStart;
  runId: string;
  environmentId: string | null;
}

export interface IngestResult {
  /** Messages that were new. */
  inserted: number;
  runIds: string[];
}

/** A rollout that failed by no fault of its policy: it is unscored from here on, whatever rewards its messages have. */
export interface RolloutFailure {
  rolloutId: string;
  failureClass: 'environment' | 'infrastructure';
}

export async function storeBatch(
  pool: Pick<pg.Pool, 'query'>,
  orgId: string,
  starts: ResolvedStart[],
  events: readonly ReadEvent[],
  failures: readonly RolloutFailure[] = [],
): Promise<IngestResult> {
  const messages = events.filter((event) => event.kind === 'message').map(messageRow);
  const { rows } = await pool.query<{ inserted: number; run_ids: string[] }>({
    name: 'rollouts-ingest',
    text: INGEST,
    values: [
      orgId,
      JSON.stringify(messages),
      JSON.stringify(firstOfEach(starts).map(startRow)),
      JSON.stringify(infoRows(events)),
      JSON.stringify(failures.map(({ rolloutId, failureClass }) => ({ rollout_id: rolloutId, failure_class: failureClass }))),
    ],
  });
  return { inserted: rows[0]?.inserted ?? 0, runIds: rows[0]?.run_ids ?? [] };
}

function messageRow(event: ReadMessage) {
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
    metadata: event.metadata,
    extra: event.extra,
    nonfinite: event.nonfinite,
    sent_at: event.sentAt,
  };
}

/** A statement may touch a row once: of several start events of one rollout the first wins. */
function firstOfEach(starts: ResolvedStart[]): ResolvedStart[] {
  const seen = new Map<string, ResolvedStart>();
  for (const start of starts) if (!seen.has(start.event.rolloutId)) seen.set(start.event.rolloutId, start);
  return [...seen.values()];
}

function startRow({ event, runId, environmentId }: ResolvedStart) {
  const facts = factsOfStart(event.raw);
  return {
    rollout_id: event.rolloutId,
    run_id: runId,
    rollout_name: facts.rolloutName,
    environment: facts.environment,
    environment_id: environmentId,
    variant: facts.variant,
    split: facts.split,
    step: facts.step,
    task_index: facts.taskIndex,
    stop: facts.stop,
    turns: facts.turns,
    reward: facts.reward,
    nonfinite: event.nonfinite,
    raw: event.raw,
  };
}

/** One row a rollout: its updates (and the start event's own rollout_info) merged key by key, the newest client time wins. */
function infoRows(events: readonly ReadEvent[]) {
  const merged = new Map<string, { info: JsonObject; at: Record<string, number> }>();
  for (const { rolloutId, sentAt, info } of events.flatMap(infoOf).toSorted((a, b) => a.sentAt - b.sentAt)) {
    const row = merged.get(rolloutId) ?? { info: {}, at: {} };
    Object.assign(row.info, info);
    for (const key of Object.keys(info)) row.at[key] = sentAt;
    merged.set(rolloutId, row);
  }
  return [...merged].map(([rolloutId, { info, at }]) => {
    const { step, taskIndex, stop } = factsOfInfo(info);
    return {
      rollout_id: rolloutId,
      step,
      step_at: step === null ? null : at.current_step,
      task_index: taskIndex,
      task_index_at: taskIndex === null ? null : at.task_index,
      stop,
      rollout_info: info,
      rollout_info_at: at,
    };
  });
}

function infoOf(event: ReadEvent): { rolloutId: string; sentAt: number; info: JsonObject }[] {
  const info = event.kind === 'update' ? event.rolloutInfo : event.kind === 'start' ? event.raw.rollout_info : null;
  if (typeof info !== 'object' || info === null || Array.isArray(info)) return [];
  return [{ rolloutId: event.rolloutId, sentAt: event.sentAt, info: info as JsonObject }];
}
