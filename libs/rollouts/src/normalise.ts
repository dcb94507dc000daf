import { INTERRUPTED_STOPS, type JsonObject, type RolloutSource, type StopReason, type UnscoredFailure } from '@palestra/protocol';
import { countGaps } from './events/gaps.ts';
import { MESSAGE_FLAGS } from './events/message-flags.ts';
import { type MessageSkeleton, orderMessages } from './events/message-skeleton.ts';
import { countAnswered, countTurns, isPolicy, type Turn, turnsOf } from './events/turns.ts';
import type { KnownPhase } from './fill-rules/group-key.ts';
import {
  groupOf,
  isReportedOutOfRange,
  phaseOf,
  rewardReportedOf,
  type UploadParts,
  sampleOf,
  stepOf,
  stopRawOf,
  tokensOf,
  turnsReportedOf,
} from './fill-rules/rollout-fields.ts';
import { type TaskKey, taskKeyOf } from './fill-rules/task-key.ts';
import { asCount, asId, asInt, asObject, asText, findField, memberOf } from './json/fields.ts';
import { rewardFields, rewardFilled } from './outcome/filled-reward.ts';
import { type StepRewards, stepRewards, withRewardInRange } from './outcome/reward.ts';
import { type StopContext, stopReason, turnOfCall } from './outcome/stop-reason.ts';
import type { LedgerTask } from './ledger/ledger-match.ts';
import { matchName } from './provenance/name-regex.ts';
import { type FieldProvenance, packProvenance, type RolloutProvenance, UNKNOWN } from './provenance/provenance.ts';
import type { RunSettings } from './provenance/run-settings.ts';
import { isSubagent, sourceOf } from './provenance/source.ts';
import { ROLLOUT_FLAGS } from './rollout-flags.ts';

/** Stored with every normalised rollout. Raise it when the same raw events can give another result. */
export const NORMALISER_VERSION = 9;

/** The raw events of one rollout that have arrived so far, cleaned (tolerant-json.ts). */
export interface RawRollout {
  id: string;
  /** null until the start event arrives. */
  start: JsonObject | null;
  /** All `rollout_update`s merged; per key the latest client timestamp wins. */
  rolloutInfo: JsonObject;
  /** In any order, repeats allowed. */
  messages: readonly MessageSkeleton[];
  /** Content of the first system and first user message together; null if not loaded. */
  prompt: string | null;
  /** Client timestamp of the start event. All times are milliseconds since the epoch. */
  startedAt: number | null;
  /** Times of arrival of the first and last event. */
  receivedAt: number;
  lastReceivedAt: number;
  /** Set if the rollout failed without fault of its policy. */
  failureClass: UnscoredFailure | null;
  /** The start event or an update contained NaN or Infinity. */
  nonfinite?: boolean;
  /** Task of the session that the rollout was matched with; `ambiguous`: sessions of several tasks match. */
  ledgerTask?: LedgerTask | { ambiguous: true } | null;
}

/** Facts of the run that a single rollout does not have. */
export interface RunContext {
  /** Largest reported `num_turns` of the run. */
  runMaxTurns?: number | null;
}

export interface NormalisedRollout {
  id: string;
  version: number;
  source: RolloutSource;
  rolloutName: string | null;
  environment: string | null;
  variant: string | null;
  split: string | null;
  /** See task-key.ts. */
  taskKey: string | null;
  taskIndex: number | null;
  taskProvenance: FieldProvenance;
  step: number | null;
  policyStep: number | null;
  /** The reported id, or the key if it is parsed; null if only step inference can tell. */
  groupId: string | null;
  /** `groupKeyOf` the group; a 63-bit decimal. */
  groupKey: string | null;
  /** Reported `n_samples`. */
  groupSize: number | null;
  /** null in a group with provenance `arrival`: the store computes it from the order of arrival. */
  sampleIdx: number | null;
  phase: KnownPhase | null;
  /** Canonical total. null means unscored and is never 0; also null for a rollout that was interrupted without fault of its policy. */
  reward: number | null;
  /** What the steps of an interrupted rollout earned; null for every other rollout. */
  partialReward: number | null;
  rewardReported: number | null;
  rewardPositive: number | null;
  /** Reward of the last step as SkyRL counts steps: 0 if the last turn was not uploaded or has no reward. null if unscored. */
  lastReward: number | null;
  /** Number of steps with a reward, and figures over them. Failed rollouts keep the rewards from before the failure. */
  rewardSteps: number;
  rewardSum: number | null;
  rewardMax: number | null;
  rewardMin: number | null;
  rewardFinal: number | null;
  failureClass: UnscoredFailure | null;
  stop: StopReason;
  stopRaw: string | null;
  turns: number | null;
  /** Turns that tools or users answered; null if messages are missing or the reported number of turns differs from the uploaded ones. */
  toolTurns: number | null;
  calls: number;
  results: number;
  /** Results that are errors. */
  callErrors: number;
  tokensOut: number | null;
  tokensTool: number | null;
  tokensPrompt: number | null;
  /** Messages that were sent and did not arrive. */
  gaps: number;
  messageCount: number;
  bytes: number;
  /** `upload`: all messages have the time of one upload, so that the time between them means nothing. */
  timeKind: 'upload' | 'live';
  startedAt: number | null;
  receivedAt: number;
  lastReceivedAt: number;
  isFinished: boolean;
  /** Largest index; -1 without messages. */
  lastIndex: number;
  /** Bits of `ROLLOUT_FLAGS`. */
  flags: number;
  sessionId: string | null;
  parentRolloutId: string | null;
  resumedFrom: string | null;
  modelName: string | null;
  agent: string | null;
  harness: string | null;
  framework: string | null;
  frameworkVersion: string | null;
  durationMs: number | null;
  provenance: RolloutProvenance;
  /** `packProvenance` of it. */
  prov: number;
}

const INTERRUPTED: ReadonlySet<StopReason> = new Set(INTERRUPTED_STOPS);
const BY_ARRIVAL: FieldProvenance = { value: 'inferred', rule: 'arrival' };

/** Pure and total: equal raw events, in any order and repeated any number of times, give an equal result. Never throws. */
export function normaliseRollout(raw: RawRollout, settings: RunSettings = {}, context: RunContext = {}): NormalisedRollout {
  const parts = partsOf(raw, settings);
  const messages = orderMessages(raw.messages).map(withRewardInRange);
  const source = settings.source ?? sourceOf({ start: parts.start, types: new Set(messages.map(({ type }) => type)) });
  const summary = summariseMessages(messages);
  const task = taskKeyOf(parts.start, parts.info, parts.name, raw.prompt, taskOfLedger(raw)?.index ?? null);
  const [step, phase, sample] = [stepOf(parts), phaseOf(parts), sampleOf(parts)];
  const group = groupOf(parts, task, step, phase.value);
  const turns = turnsFilled(parts, summary);
  const tokens = tokensOf(parts, messages.length === 0 ? null : summary.bytesBySide);
  const lastCallTurn = source === 'skyrl' ? skyrlTurn(summary, turns.reported) : null;
  const stopRaw = stopRawOf(parts);
  const { isFinished, lastResultFinished } = summary;
  const { failureClass } = raw;
  const stop = stopReason(
    { source, raw: stopRaw?.value ?? null, failureClass, isFinished, lastResultFinished, lastCallTurn, numTurns: turns.reported },
    stopContext(settings, context),
  );
  const reward = rewardFilled(rewardReportedOf(parts), summary.rewards, failureClass !== null || INTERRUPTED.has(stop.stop));
  const session = findField(parts, ['session_id'], asText);
  const provenance: RolloutProvenance = {
    step: step.provenance,
    group: group.provenance,
    sample: sample.value === null && group.key !== null ? BY_ARRIVAL : sample.provenance,
    reward: reward.provenance,
    stop: { value: stop.provenance, rule: stop.rule === 'raw' ? (stopRaw?.key ?? null) : stop.rule },
    turns: turns.provenance,
    tokens: tokens.provenance,
    phase: phase.provenance,
    telemetry: session === null ? UNKNOWN : { value: 'reported', rule: session.key },
  };
  return {
    id: raw.id,
    version: NORMALISER_VERSION,
    source,
    ...plainFields(parts),
    taskKey: task.key,
    taskIndex: task.index,
    taskProvenance: task.provenance,
    step: step.value,
    groupId: group.value,
    groupKey: group.key,
    sampleIdx: sample.value,
    phase: phase.value,
    ...rewardFields(reward, summary.rewards),
    lastReward: reward.total === null ? null : lastStepReward(source, reward.total, summary, { lastCallTurn, numTurns: turns.reported }),
    failureClass,
    stop: stop.stop,
    stopRaw: stopRaw?.value ?? null,
    turns: turns.value,
    toolTurns: turns.answered,
    calls: summary.calls.length,
    results: summary.results.length,
    callErrors: summary.callErrors,
    tokensOut: tokens.output,
    tokensTool: tokens.tool,
    tokensPrompt: tokens.prompt,
    gaps: summary.gaps,
    messageCount: messages.length,
    bytes: summary.bytes,
    timeKind: summary.timeKind,
    startedAt: raw.startedAt,
    receivedAt: raw.receivedAt,
    lastReceivedAt: raw.lastReceivedAt,
    isFinished,
    lastIndex: summary.lastIndex,
    flags: flagsOf(raw, { parts, task, summary }, stop.stop, reward.mismatch),
    sessionId: session?.value ?? null,
    provenance,
    prov: packProvenance(provenance),
  };
}

function partsOf(raw: RawRollout, settings: RunSettings): UploadParts {
  const ledgerTask = taskOfLedger(raw);
  const start = { ...raw.start, ...(ledgerTask?.split != null && { split: ledgerTask.split }) };
  const name = asText(memberOf(start, 'rolloutName'));
  return {
    start,
    metadata: asObject(memberOf(start, 'metadata')),
    runInfo: asObject(memberOf(start, 'run_info')),
    info: { ...asObject(memberOf(start, 'rollout_info')), ...raw.rolloutInfo },
    name: settings.nameRegex == null || name === null ? null : matchName(settings.nameRegex, name),
  };
}

const taskOfLedger = ({ ledgerTask }: RawRollout): LedgerTask | null => (ledgerTask != null && 'index' in ledgerTask ? ledgerTask : null);

const stopContext = (settings: RunSettings, context: RunContext): StopContext => ({
  maxTurns: settings.maxTurns,
  runMaxTurns: context.runMaxTurns,
});

/** Fields that are read without rules. */
function plainFields(parts: UploadParts) {
  const { start, metadata, runInfo, info } = parts;
  const field = <T>(keys: string[], read: (value: unknown) => T | null) => findField(parts, keys, read)?.value ?? null;
  return {
    rolloutName: asText(memberOf(start, 'rolloutName')),
    environment: asText(memberOf(start, 'environment')),
    variant: asText(memberOf(start, 'variant')),
    split: asText(memberOf(start, 'split')),
    policyStep: field(['policy_step'], asInt),
    groupSize: field(['n_samples'], asCount),
    parentRolloutId: field(['parent_rollout', 'parent_rollout_id'], asText),
    resumedFrom: field(['resumed_from_rollout_id'], asText),
    modelName: asText(memberOf(runInfo, 'model_name')) ?? field(['model', 'model_name'], asText),
    agent: asText(memberOf(metadata, 'agent')),
    harness: asText(memberOf(info, 'harness')),
    framework: asText(memberOf(runInfo, 'framework')),
    frameworkVersion: asId(memberOf(runInfo, 'framework_version')),
    durationMs: asCount(memberOf(info, 'duration_ms')),
  };
}

interface MessageSummary {
  turns: Turn[];
  rewards: StepRewards;
  calls: MessageSkeleton[];
  results: MessageSkeleton[];
  lastResult: MessageSkeleton | undefined;
  lastResultFinished: boolean;
  isFinished: boolean;
  callErrors: number;
  orphans: boolean;
  gaps: number;
  lastIndex: number;
  bytes: number;
  bytesBySide: { policy: number; results: number };
  timeKind: 'upload' | 'live';
  /** Bits of `MESSAGE_FLAGS` over all messages. */
  flags: number;
}

function summariseMessages(messages: readonly MessageSkeleton[]): MessageSummary {
  const turns = turnsOf(messages);
  const calls = messages.filter(({ type }) => type === 'tool_call');
  const results = messages.filter(({ type }) => type === 'tool_result');
  const called = new Set(calls.map(({ callId }) => callId));
  const bytesOf = (some: readonly MessageSkeleton[]) => some.reduce((sum, { bytes }) => sum + bytes, 0);
  const lastResult = results.at(-1);
  return {
    turns,
    rewards: stepRewards(turns),
    calls,
    results,
    lastResult,
    lastResultFinished: lastResult?.isFinished === true,
    isFinished: messages.some(({ isFinished }) => isFinished),
    callErrors: results.filter(({ flags }) => (flags & MESSAGE_FLAGS.error) !== 0).length,
    orphans: results.some(({ callId }) => callId === null || !called.has(callId)),
    gaps: countGaps(messages.map(({ index }) => index)),
    lastIndex: messages.at(-1)?.index ?? -1,
    bytes: bytesOf(messages),
    bytesBySide: { policy: bytesOf(messages.filter(({ type }) => isPolicy(type))), results: bytesOf(results) },
    timeKind: timeKindOf(messages),
    flags: messages.reduce((flags, message) => flags | message.flags, 0),
  };
}

/** Whether a client stamped all messages in one loop at upload: under 5 ms per message (docs/reference/metrics.md#messages). */
function timeKindOf(messages: readonly MessageSkeleton[]): 'upload' | 'live' {
  let [first, last] = [Infinity, -Infinity];
  for (const { sentAt } of messages) [first, last] = [Math.min(first, sentAt), Math.max(last, sentAt)];
  return messages.length > 0 && last - first >= 5 * messages.length ? 'live' : 'upload';
}

interface FilledTurns {
  value: number | null;
  reported: number | null;
  answered: number | null;
  provenance: FieldProvenance;
}

function turnsFilled(parts: UploadParts, summary: MessageSummary): FilledTurns {
  const { value, provenance } = turnsReportedOf(parts);
  const counted = summary.lastIndex === -1 ? null : countTurns(summary.turns);
  const whole = counted !== null && summary.gaps === 0 && (value === null || value === counted);
  const answered = whole ? countAnswered(summary.turns) : null;
  if (value !== null) return { value, reported: value, answered, provenance };
  return { value: counted, reported: null, answered, provenance: counted === null ? UNKNOWN : { value: 'parsed', rule: 'messages' } };
}

/** SkyRL's turn of the last uploaded result; null if its call is missing or the call ids are not SkyRL's. */
function skyrlTurn({ calls, lastResult }: MessageSummary, numTurns: number | null): number | null {
  if (lastResult?.callId == null || numTurns === null) return null;
  const call = calls.find(({ callId }) => callId === lastResult.callId);
  return call?.name == null ? null : turnOfCall(lastResult.callId, call.name, numTurns, calls.indexOf(call) + 1);
}

/**
 * SkyRL's pass rule uses the last step only, and steps that are not uploaded have reward 0 (docs/reference/skyrl.md#pass-rule): the last
 * result counts only if its turn is the last one. For other sources it is the last turn of the policy. A total without message rewards is
 * the reward of one step.
 */
function lastStepReward(
  source: RolloutSource,
  reward: number,
  { rewards, lastResult }: MessageSummary,
  { lastCallTurn, numTurns }: { lastCallTurn: number | null; numTurns: number | null },
): number | null {
  if (lastCallTurn !== null) return lastCallTurn === numTurns ? (lastResult?.reward ?? 0) : 0;
  return rewards.lastTurn ?? (source === 'skyrl' ? null : reward);
}

function flagsOf(
  raw: RawRollout,
  { parts, task, summary }: { parts: UploadParts; task: TaskKey; summary: MessageSummary },
  stop: StopReason,
  mismatch: boolean,
): number {
  const any = (flag: keyof typeof MESSAGE_FLAGS) => (summary.flags & MESSAGE_FLAGS[flag]) !== 0;
  const set: Record<keyof typeof ROLLOUT_FLAGS, boolean> = {
    reward_mismatch: mismatch,
    stamped_turn: summary.rewards.stamped,
    nonfinite: raw.nonfinite === true || any('nonfinite') || isReportedOutOfRange(parts),
    parse_error: any('parseError') || stop === 'parse_error',
    orphan_result: summary.orphans,
    subagent: isSubagent(parts.start),
    has_image: any('image'),
    has_reasoning: any('reasoning'),
    env_error: stop === 'env_error',
    infra_error: stop === 'infra_error',
    tool_error: summary.callErrors > 0,
    gap: summary.gaps > 0,
    nudge: any('nudge'),
    resumed: findField(parts, ['resumed_from_rollout_id'], asText) !== null,
    ambiguous_task: raw.ledgerTask != null && 'ambiguous' in raw.ledgerTask && task.index === null,
  };
  return (Object.keys(set) as (keyof typeof set)[]).reduce((flags, name) => (set[name] ? flags | ROLLOUT_FLAGS[name] : flags), 0);
}
