import { withoutNoise } from '@palestra/kit/reward-text';
import {
  type JsonObject,
  type MessageType,
  PHASES,
  type RolloutMessageView,
  type RolloutRow,
  type RolloutView,
  STOP_REASONS,
  VERIFICATIONS,
} from '@palestra/protocol';
import { MESSAGE_FLAGS, missingIndexes, rolloutFlagNames, rolloutState, unpackProvenance } from '@palestra/rollouts';
import { failureClassOf, wordOf } from '../store/vocabulary-codes.ts';
import type { RolloutDetail, RolloutHead, RolloutRecord } from './rollout.sql.ts';
import type { StoredMessageRow } from '../store/storage/transcript-reader.service.ts';

export function presentRolloutRow(record: RolloutRecord): RolloutRow {
  return {
    id: record.id,
    rolloutName: record.rollout_name,
    environment: record.environment,
    split: record.split,
    variant: record.variant,
    task_index: record.task_index,
    task: record.task_id === null ? null : String(record.task_id),
    step: record.step,
    policy_step: record.policy_step,
    group: record.group_key,
    sample: record.sample,
    phase: wordOf(PHASES, record.phase) ?? 'unknown',
    reward: withoutNoise(record.reward),
    partial_reward: withoutNoise(record.partial_reward),
    reward_reported: record.reward_reported,
    // That of a partial sum is for lenses only.
    max_reward: record.reward === null ? null : withoutNoise(record.max_reward),
    num_messages: record.messages,
    num_tool_calls: record.calls,
    num_errors: record.call_errors,
    turns: record.turns ?? 0,
    tokens: record.tokens_out,
    tool_tokens: record.tokens_tool,
    bytes: Number(record.bytes),
    gaps: record.gaps,
    finished: record.finished,
    stop: stopOf(record.stop),
    failure_class: failureClassOf(record),
    flags: rolloutFlagNames(record.flags),
    provenance: unpackProvenance(record.provenance),
    verified: wordOf(VERIFICATIONS, record.verdict),
    latency_ms: record.latency_ms,
    source: record.source,
    model: record.model,
    session: record.sid,
    state: rolloutState({ messages: record.messages, finished: record.finished, lastEventAgeMs: record.age_ms }),
    created_at: record.received_at.toISOString(),
    updated_at: record.last_at.toISOString(),
  };
}

/** null for `unknown`, as for a rollout without a stop reason. */
function stopOf(code: number | null): string | null {
  const stop = wordOf(STOP_REASONS, code);
  return stop === 'unknown' ? null : stop;
}

/** A message with the field names of the upload. `content` is a string, or null if the upload had none. */
export function presentMessage(row: StoredMessageRow): RolloutMessageView {
  return {
    eventId: row.event_id,
    index: row.index,
    timestamp: Number(row.sent_at),
    type: row.type as MessageType,
    content: row.content,
    contentReference: row.content_reference,
    summary: row.summary,
    name: row.name,
    callId: row.call_id,
    reward: row.reward,
    isFinished: row.is_finished,
    metadata: row.metadata ?? {},
    ...(row.flags & MESSAGE_FLAGS.nonfinite ? { nonfinite: true } : {}),
    ...(row.blob_key === null ? {} : { body_bytes: row.bytes }),
  };
}

/** Pages of messages have bodies up to this size, bytes; larger ones are cut to `PREVIEW_CHARACTERS`. */
const INLINE_BYTES = 16_384;
const PREVIEW_CHARACTERS = 512;

/** As `presentMessage`, but cuts a large body, for pages with a thousand messages. */
export function presentPreview(row: StoredMessageRow): RolloutMessageView {
  const view = presentMessage(row);
  const bytes = row.blob_key === null ? Buffer.byteLength(row.content ?? '') : row.bytes;
  return bytes <= INLINE_BYTES ? view : { ...view, content: (row.content ?? '').slice(0, PREVIEW_CHARACTERS), body_bytes: bytes };
}

/** A rollout before its start event arrived: messages without a run. */
function presentOrphan(head: RolloutHead): RolloutRow {
  const lastEventAgeMs = Date.now() - head.last_at.getTime();
  return {
    id: head.id,
    rolloutName: null,
    environment: null,
    split: null,
    variant: null,
    task_index: null,
    task: null,
    step: null,
    policy_step: null,
    group: null,
    sample: null,
    phase: 'unknown',
    reward: null,
    partial_reward: null,
    reward_reported: null,
    max_reward: null,
    num_messages: head.messages,
    num_tool_calls: 0,
    num_errors: 0,
    turns: 0,
    tokens: null,
    tool_tokens: null,
    bytes: 0,
    gaps: 0,
    finished: false,
    stop: null,
    failure_class: null,
    flags: [],
    provenance: unpackProvenance(0),
    verified: null,
    latency_ms: null,
    source: null,
    model: null,
    session: null,
    state: rolloutState({ messages: head.messages, finished: false, lastEventAgeMs }),
    created_at: head.received_at.toISOString(),
    updated_at: head.last_at.toISOString(),
  };
}

/** A rollout that is not normalised yet may be incomplete. */
export const hasGaps = (record: RolloutRecord | null): boolean => record === null || record.gaps > 0;

/** Everything except the messages. `messages`: in their order. */
export function presentHeader(
  head: RolloutHead,
  record: RolloutDetail | null,
  orgName: string,
  messages: readonly { index: number }[],
): Omit<RolloutView, 'messages'> {
  const start = head.start ?? {};
  return {
    ...(record ? presentRolloutRow(record) : presentOrphan(head)),
    run: { id: head.run_id ?? '', name: head.run_name ?? '', org: orgName },
    metadata: (start.metadata as JsonObject | undefined) ?? {},
    task_spec: start.task_spec ?? null,
    run_info: (start.run_info as JsonObject | undefined) ?? null,
    rollout_info: head.rollout_info,
    rules: record?.rules ?? {},
    missing_indexes: hasGaps(record) ? missingIndexes(messages.map(({ index }) => index)) : [],
  };
}
