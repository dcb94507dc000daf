import { type JsonObject, PHASES, PROVENANCE_FIELDS, type ProvenanceField, STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import {
  cutText,
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
import { codeOf } from '../codes.ts';
import type { DirtyHead, FactRow } from './derive.sql.ts';

export interface Names {
  envId: number;
  taskId: number | null;
}

/** Of names that are in an index, which PostgreSQL bounds by 2704 bytes a row: a model may make up a tool of any length. */
const INDEXED_CHARACTERS = 256;

/** Trainers that tell no step and upload wave by wave (dashboard.md 2.4). */
const IN_WAVES: ReadonlySet<string> = new Set(['skyrl', 'slime/miles']);

/**
 * Whether step inference has a say: for those trainers, and where the owner says how many samples a prompt has. Elsewhere (evaluations,
 * uploads by hand) all rollouts of a task that tell no step are one group: its samples.
 */
function isInferred(rollout: NormalisedRollout, settings: RunSettings): boolean {
  const asked = IN_WAVES.has(rollout.source) || (settings.n ?? settings.batchSize ?? null) !== null;
  return rollout.step === null && rollout.taskKey !== null && asked;
}

/** Batches come in any order: what is not here yet is missing after `graceMs` without an event (dashboard.md 2.6). */
function gapsOf({ gaps, flags }: NormalisedRollout, quietMs: number, graceMs: number): Pick<FactRow, 'gaps' | 'gaps_in' | 'flags'> {
  if (gaps === 0 || quietMs >= graceMs) return { gaps, gaps_in: null, flags };
  return { gaps: 0, gaps_in: graceMs - quietMs, flags: flags & ~ROLLOUT_FLAGS.gap };
}

/** What the normaliser found, as the narrow row that lists and curves read. */
export function factRow(
  head: DirtyHead,
  rollout: NormalisedRollout,
  messages: readonly MessageSkeleton[],
  names: Names,
  { settings, gapGraceMs }: { settings: RunSettings; gapGraceMs: number },
): FactRow {
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
    reward_positive: rollout.rewardPositive,
    max_reward: rollout.reward === null ? null : rollout.rewardMax,
    last_reward: rollout.lastReward,
    reward_reported: rollout.rewardReported,
    reward_steps: Math.min(rollout.rewardSteps, 32_767),
    group_size: rollout.groupSize === null ? null : Math.min(rollout.groupSize, 32_767),
    stop: codeOf(STOP_REASONS, rollout.stop),
    failure: codeOf(UNSCORED_FAILURES, head.failure_class),
    turns: rollout.turns,
    tool_turns: rollout.toolTurns,
    messages: rollout.messageCount,
    // A result tells of a call, also where that was not uploaded, as clients do that keep one event a message: of errors it is the whole.
    calls: Math.max(rollout.calls, rollout.results),
    call_errors: rollout.callErrors,
    tokens_out: rollout.tokensOut,
    tokens_tool: rollout.tokensTool,
    bytes: rollout.bytes,
    ...gapsOf(rollout, head.quiet_ms, gapGraceMs),
    provenance: samples === null ? rollout.prov : withProvenance(rollout.prov, 'group', 'inferred'),
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
    rules: rulesOf(rollout),
    infer,
    tools: toolsOf(messages),
  };
}

function rulesOf(rollout: NormalisedRollout): JsonObject {
  const fields = PROVENANCE_FIELDS.map((field: ProvenanceField) => [field, rollout.provenance[field].rule] as const);
  return Object.fromEntries(fields.filter(([, rule]) => rule !== null));
}

/** Calls by tool; a result belongs to the latest call of its id. A call without a name has no tool and is left out. */
function toolsOf(messages: readonly MessageSkeleton[]): FactRow['tools'] {
  const tools = new Map<string, FactRow['tools'][number]>();
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
