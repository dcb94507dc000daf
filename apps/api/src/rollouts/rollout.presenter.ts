import type { JsonObject, MessageType, RolloutMessageView, RolloutRow, RolloutView } from '@palestra/protocol';
import { hasDoubleReward, rolloutState } from '@palestra/rollouts';
import type { MessageRecord, RolloutDetail, RolloutRecord } from './rollout.sql.ts';

export function presentRolloutRow(record: RolloutRecord): RolloutRow {
  return {
    id: record.id,
    rolloutName: record.rollout_name,
    environment: record.environment,
    split: record.split,
    variant: record.variant,
    task_index: record.task_index,
    step: record.step,
    reward: record.reward,
    max_reward: record.max_reward,
    num_messages: record.num_messages,
    num_tool_calls: record.num_tool_calls,
    turns: record.turns,
    finished: record.finished,
    stop: record.finished ? 'finished' : record.stop,
    failure_class: record.failure_class,
    state: rolloutState({ messages: record.num_messages, finished: record.finished, lastEventAgeMs: record.age_ms }),
    created_at: record.created_at.toISOString(),
    updated_at: record.updated_at.toISOString(),
  };
}

/** A message under the names of the upload; `content` is always a string there, so null is only for one that had none. */
export function presentMessage(record: MessageRecord): RolloutMessageView {
  return {
    eventId: record.event_id,
    index: record.index,
    timestamp: Number(record.sent_at),
    type: record.type as MessageType,
    content: record.content,
    contentReference: record.content_reference,
    summary: record.summary,
    name: record.name,
    callId: record.call_id,
    reward: record.reward,
    isFinished: record.is_finished,
    metadata: record.metadata,
    ...(record.nonfinite ? { nonfinite: true } : {}),
  };
}

export function presentRollout(detail: RolloutDetail, orgName: string, messages: MessageRecord[], missing: number[]): RolloutView {
  const start = detail.start ?? {};
  const views = messages.map(presentMessage);
  return {
    ...presentRolloutRow(detail),
    run: { id: detail.run_id ?? '', name: detail.run_name ?? '', org: orgName },
    metadata: (start.metadata as JsonObject | undefined) ?? {},
    task_spec: start.task_spec ?? null,
    run_info: (start.run_info as JsonObject | undefined) ?? null,
    rollout_info: detail.rollout_info,
    flags: hasDoubleReward(views) ? ['double_reward'] : [],
    missing_indexes: missing,
    messages: views,
  };
}
