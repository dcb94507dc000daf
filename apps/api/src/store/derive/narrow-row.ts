import {
  CAUSE_KINDS,
  fingerprintToBigint,
  type JsonObject,
  PHASES,
  PROVENANCE_FIELDS,
  STOP_REASONS,
  UNSCORED_FAILURES,
} from '@palestra/protocol';
import {
  cutText,
  type FailureCause,
  groupKeyOf,
  MESSAGE_FLAGS,
  type MessageSkeleton,
  type NormalisedRollout,
  NORMALISER_VERSION,
  ROLLOUT_FLAGS,
  type RunSettings,
  taskOfVariant,
  withProvenance,
} from '@palestra/rollouts';
import { codeOf } from '../vocabulary-codes.ts';
import type { DirtyHead, NarrowRow } from './derive.sql.ts';

export interface DictionaryIds {
  envId: number;
  taskId: number | null;
  rulesId: number;
}

/** Limit of names in an index, because PostgreSQL limits an index row to 2704 bytes and a model may invent a tool name of any length. */
const INDEXED_CHARACTERS = 256;

/** Trainers that report no step and upload in waves (docs/reference/metrics.md#step-inference). */
const IN_WAVES: ReadonlySet<string> = new Set(['skyrl', 'slime/miles']);

/**
 * Whether the step is inferred: for these trainers, and for runs whose owner set the number of samples. Otherwise (evaluations, manual
 * uploads) all rollouts of a task without a step are one group.
 */
function isInferred(rollout: NormalisedRollout, settings: RunSettings): boolean {
  const isEnabled = IN_WAVES.has(rollout.source) || (settings.n ?? settings.batchSize ?? null) !== null;
  return rollout.step === null && rollout.taskKey !== null && isEnabled;
}

/** In a group that is inferred, samples without a number count in their order of arrival. */
function provenanceInSamples({ prov, sampleIdx }: NormalisedRollout): number {
  const grouped = withProvenance(prov, 'group', 'inferred');
  return sampleIdx === null ? withProvenance(grouped, 'sample', 'inferred') : grouped;
}

/** Batches arrive in any order: a missing message counts as lost after `graceMs` without an event (docs/reference/metrics.md#messages). */
function gapsOf({ gaps, flags }: NormalisedRollout, quietMs: number, graceMs: number): Pick<NarrowRow, 'gaps' | 'gaps_in' | 'flags'> {
  if (gaps === 0 || quietMs >= graceMs) return { gaps, gaps_in: null, flags };
  return { gaps: 0, gaps_in: graceMs - quietMs, flags: flags & ~ROLLOUT_FLAGS.gap };
}

/** The normalised rollout as a narrow row, which lists and curves read. */
export function narrowRow(
  head: DirtyHead,
  rollout: NormalisedRollout,
  messages: readonly MessageSkeleton[],
  cause: FailureCause | null,
  names: DictionaryIds,
  { settings, gapGraceMs }: { settings: RunSettings; gapGraceMs: number },
): NarrowRow {
  const infer = isInferred(rollout, settings);
  const { taskKey } = rollout;
  const samples =
    rollout.groupKey === null && rollout.step === null && !infer && taskKey !== null
      ? groupKeyOf(rollout.phase, taskOfVariant(taskKey, rollout.variant), null, 0)
      : null;
  return {
    seq: head.seq,
    id: head.id,
    revision: head.revision,
    run_seq: head.run_seq,
    env_id: names.envId,
    task_id: names.taskId,
    task_index: rollout.taskIndex,
    step: rollout.step,
    policy_step: rollout.policyStep,
    group_key: rollout.groupKey ?? samples,
    sample_idx: rollout.sampleIdx,
    phase: codeOf(PHASES, rollout.phase) ?? PHASES.indexOf('unknown'),
    reward: rollout.reward,
    partial_reward: rollout.partialReward,
    reward_positive: rollout.rewardPositive,
    max_reward: rollout.rewardMax,
    last_reward: rollout.lastReward,
    reward_reported: rollout.rewardReported,
    reward_steps: Math.min(rollout.rewardSteps, 32_767),
    group_size: rollout.groupSize === null ? null : Math.min(rollout.groupSize, 32_767),
    stop: codeOf(STOP_REASONS, rollout.stop),
    failure: codeOf(UNSCORED_FAILURES, head.failure_class),
    cause: cause === null ? null : fingerprintToBigint(cause.fingerprint),
    cause_index: cause?.index ?? null,
    cause_kind: codeOf(CAUSE_KINDS, cause?.kind),
    cause_tool: cause?.tool ?? null,
    turns: rollout.turns,
    tool_turns: rollout.toolTurns,
    messages: rollout.messageCount,
    // A result without an uploaded call also counts as a call. Clients that keep one event per message upload such errors.
    calls: Math.max(rollout.calls, rollout.results),
    call_errors: rollout.callErrors,
    tokens_out: rollout.tokensOut,
    tokens_tool: rollout.tokensTool,
    bytes: rollout.bytes,
    ...gapsOf(rollout, head.quiet_ms, gapGraceMs),
    provenance: samples === null ? rollout.prov : provenanceInSamples(rollout),
    normaliser: NORMALISER_VERSION,
    finished: rollout.isFinished,
    split: rollout.split,
    received_at: head.received_at,
    last_at: head.last_at,
    rollout_name: rollout.rolloutName,
    source: rollout.source,
    model: rollout.modelName,
    author: rollout.agent,
    stop_raw: rollout.stopRaw,
    sid: rollout.sessionId === null ? null : cutText(rollout.sessionId, INDEXED_CHARACTERS),
    rules_id: names.rulesId,
    telemetry_rule: rollout.provenance.telemetry.rule,
    infer,
    tools: toolsOf(messages),
  };
}

/** Rules by field. That of `telemetry` depends on the session, the others are the same for most rollouts. */
export function rulesOf(rollout: NormalisedRollout): JsonObject {
  const fields = PROVENANCE_FIELDS.filter((field) => field !== 'telemetry').map(
    (field) => [field, rollout.provenance[field].rule] as const,
  );
  return Object.fromEntries(fields.filter(([, rule]) => rule !== null));
}

/** Calls by tool. A result belongs to the latest call with its id. A call without a name is skipped. */
function toolsOf(messages: readonly MessageSkeleton[]): NarrowRow['tools'] {
  const tools = new Map<string, NarrowRow['tools'][number]>();
  const byCall = new Map<string, string>();
  for (const message of messages) {
    if (message.type === 'tool_call' && message.name !== null) {
      const name = cutText(message.name, INDEXED_CHARACTERS);
      const tool = tools.get(name) ?? { tool: name, calls: 0, errors: 0, result_bytes: 0 };
      tools.set(name, tool);
      tool.calls += 1;
      if (message.callId !== null) byCall.set(message.callId, name);
    }
    const tool = message.type === 'tool_result' && message.callId !== null ? tools.get(byCall.get(message.callId) ?? '') : undefined;
    if (!tool) continue;
    tool.result_bytes += message.bytes;
    if (message.flags & MESSAGE_FLAGS.error) tool.errors += 1;
  }
  return [...tools.values()];
}
