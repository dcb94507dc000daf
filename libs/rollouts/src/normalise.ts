import type { JsonObject, RolloutSource, StopReason, UnscoredFailure } from '@palestra/protocol';
import { countGaps } from './events/gaps.ts';
import { MESSAGE_FLAGS } from './events/message-flags.ts';
import { type MessageSkeleton, orderMessages } from './events/message-skeleton.ts';
import { countAnswered, countTurns, isPolicy, type Turn, turnsOf } from './events/turns.ts';
import type { KnownPhase } from './fill-rules/group-key.ts';
import {
  groupOf,
  phaseOf,
  type Places,
  rewardReportedOf,
  sampleOf,
  stepOf,
  stopRawOf,
  tokensOf,
  turnsReportedOf,
} from './fill-rules/rollout-fields.ts';
import { taskKeyOf } from './fill-rules/task-key.ts';
import { asCount, asId, asInt, asObject, asText, findField, own } from './json/fields.ts';
import { canonicalReward, type StepRewards, stepRewards, withRewardInRange } from './outcome/reward.ts';
import { type StopContext, stopReason, turnOfCall } from './outcome/stop-reason.ts';
import { matchName } from './provenance/name-regex.ts';
import { type FieldProvenance, packProvenance, type RolloutProvenance, UNKNOWN } from './provenance/provenance.ts';
import type { RunSettings } from './provenance/run-settings.ts';
import { isSubagent, sourceOf } from './provenance/source.ts';
import { ROLLOUT_FLAGS } from './rollout-flags.ts';

/** Stored beside every normalised rollout; raised whenever the same raw events could give another result. */
export const NORMALISER_VERSION = 6;

/** The raw events of one rollout, cleaned (tolerant-json.ts), as far as they have arrived. */
export interface RawRollout {
  id: string;
  /** The start event; null while only its messages are here. */
  start: JsonObject | null;
  /** All `rollout_update`s merged, the newest client time winning per key. */
  rolloutInfo: JsonObject;
  /** In any order, repeats allowed. */
  messages: readonly MessageSkeleton[];
  /** Content of the first system and the first user message together; null when not loaded. */
  prompt: string | null;
  /** The client's time of the start event. All times in milliseconds since the epoch. */
  startedAt: number | null;
  /** First and last event here. */
  receivedAt: number;
  lastReceivedAt: number;
  /** Set when the rollout failed by no fault of its policy. */
  failureClass: UnscoredFailure | null;
  /** A NaN or Infinity stood in the start event or an update. */
  nonfinite?: boolean;
}

/** What only the other rollouts of the run tell. */
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
  /** As reported, or the key where it is parsed; null where only inference could tell. */
  groupId: string | null;
  /** `groupKeyOf` it; a 63-bit decimal. */
  groupKey: string | null;
  /** `n_samples` as reported. */
  groupSize: number | null;
  /** Null in a group (`arrival`): the place in which it came among its samples, which only the store can tell. */
  sampleIdx: number | null;
  phase: KnownPhase | null;
  /** Canonical total; null = unscored, which is not 0. Also null for a rollout that failed by no fault of its policy. */
  reward: number | null;
  rewardReported: number | null;
  rewardPositive: number | null;
  /** Reward of the last step as SkyRL counts steps: 0 when the last turn was not uploaded or has none. Null when unscored. */
  lastReward: number | null;
  /** Steps with a reward, and over these; what failed rollouts got before they failed is kept here. */
  rewardSteps: number;
  rewardSum: number | null;
  rewardMax: number | null;
  rewardMin: number | null;
  rewardFinal: number | null;
  failureClass: UnscoredFailure | null;
  stop: StopReason;
  stopRaw: string | null;
  turns: number | null;
  /** Turns that tools or users answered; null where messages are missing, or the upload reports another number of turns than it holds. */
  toolTurns: number | null;
  calls: number;
  results: number;
  /** Results that are errors. */
  callErrors: number;
  tokensOut: number | null;
  tokensTool: number | null;
  tokensPrompt: number | null;
  /** Messages that must have been sent and are not here. */
  gaps: number;
  messageCount: number;
  bytes: number;
  /** `upload`: all messages bear the time of one upload, so that nothing can be told from their distances. */
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

const BY_ARRIVAL: FieldProvenance = { value: 'inferred', rule: 'arrival' };

/** Pure and total: equal raw events, in whatever order and however often repeated, give an equal result, and none throws. */
export function normaliseRollout(raw: RawRollout, settings: RunSettings = {}, context: RunContext = {}): NormalisedRollout {
  const places = placesOf(raw, settings);
  const messages = orderMessages(raw.messages).map(withRewardInRange);
  const source = settings.source ?? sourceOf({ start: places.start, types: new Set(messages.map(({ type }) => type)) });
  const facts = messageFacts(messages);
  const task = taskKeyOf(places.start, places.info, places.name, raw.prompt);
  const [step, phase, sample] = [stepOf(places), phaseOf(places), sampleOf(places)];
  const group = groupOf(places, task, step, phase.value);
  const turns = turnsFilled(places, facts);
  const tokens = tokensOf(places, messages.length === 0 ? null : facts.bytesBySide);
  const lastCallTurn = source === 'skyrl' ? skyrlTurn(facts, turns.reported) : null;
  const stopRaw = stopRawOf(places);
  const { isFinished, lastResultFinished } = facts;
  const { failureClass } = raw;
  const stop = stopReason(
    { source, raw: stopRaw?.value ?? null, failureClass, isFinished, lastResultFinished, lastCallTurn, numTurns: turns.reported },
    stopContext(settings, context),
  );
  const reward = rewardFilled(places, facts.rewards, raw.failureClass !== null);
  const session = findField(places, ['session_id'], asText);
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
    ...plainFacts(places),
    taskKey: task.key,
    taskIndex: task.index,
    taskProvenance: task.provenance,
    step: step.value,
    groupId: group.value,
    groupKey: group.key,
    sampleIdx: sample.value,
    phase: phase.value,
    ...rewardFields(reward, facts.rewards),
    lastReward: reward.reward === null ? null : lastStepReward(source, reward.reward, facts, { lastCallTurn, numTurns: turns.reported }),
    failureClass,
    stop: stop.stop,
    stopRaw: stopRaw?.value ?? null,
    turns: turns.value,
    toolTurns: turns.answered,
    calls: facts.calls.length,
    results: facts.results.length,
    callErrors: facts.callErrors,
    tokensOut: tokens.output,
    tokensTool: tokens.tool,
    tokensPrompt: tokens.prompt,
    gaps: facts.gaps,
    messageCount: messages.length,
    bytes: facts.bytes,
    timeKind: facts.timeKind,
    startedAt: raw.startedAt,
    receivedAt: raw.receivedAt,
    lastReceivedAt: raw.lastReceivedAt,
    isFinished,
    lastIndex: facts.lastIndex,
    flags: flagsOf(raw, places, facts, stop.stop, reward.mismatch),
    sessionId: session?.value ?? null,
    provenance,
    prov: packProvenance(provenance),
  };
}

function placesOf(raw: RawRollout, settings: RunSettings): Places {
  const start = raw.start ?? {};
  const name = asText(own(start, 'rolloutName'));
  return {
    start,
    metadata: asObject(own(start, 'metadata')),
    runInfo: asObject(own(start, 'run_info')),
    info: { ...asObject(own(start, 'rollout_info')), ...raw.rolloutInfo },
    name: settings.nameRegex == null || name === null ? null : matchName(settings.nameRegex, name),
  };
}

const stopContext = (settings: RunSettings, context: RunContext): StopContext => ({
  maxTurns: settings.maxTurns,
  runMaxTurns: context.runMaxTurns,
});

/** What is read as it stands, without rules. */
function plainFacts(places: Places) {
  const { start, metadata, runInfo, info } = places;
  const field = <T>(keys: string[], read: (value: unknown) => T | null) => findField(places, keys, read)?.value ?? null;
  return {
    rolloutName: asText(own(start, 'rolloutName')),
    environment: asText(own(start, 'environment')),
    variant: asText(own(start, 'variant')),
    split: asText(own(start, 'split')),
    policyStep: field(['policy_step'], asInt),
    groupSize: field(['n_samples'], asCount),
    parentRolloutId: field(['parent_rollout', 'parent_rollout_id'], asText),
    resumedFrom: field(['resumed_from_rollout_id'], asText),
    modelName: asText(own(runInfo, 'model_name')) ?? field(['model', 'model_name'], asText),
    agent: asText(own(metadata, 'agent')),
    harness: asText(own(info, 'harness')),
    framework: asText(own(runInfo, 'framework')),
    frameworkVersion: asId(own(runInfo, 'framework_version')),
    durationMs: asCount(own(info, 'duration_ms')),
  };
}

interface MessageFacts {
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
  /** Bits of `MESSAGE_FLAGS` that any message has. */
  flags: number;
}

function messageFacts(messages: readonly MessageSkeleton[]): MessageFacts {
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

/** A client that uploads a whole episode stamps its messages in one loop: under 5 ms each (dashboard.md 2.6). */
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

function turnsFilled(places: Places, facts: MessageFacts): FilledTurns {
  const { value, provenance } = turnsReportedOf(places);
  const counted = facts.lastIndex === -1 ? null : countTurns(facts.turns);
  const whole = counted !== null && facts.gaps === 0 && (value === null || value === counted);
  const answered = whole ? countAnswered(facts.turns) : null;
  if (value !== null) return { value, reported: value, answered, provenance };
  return { value: counted, reported: null, answered, provenance: counted === null ? UNKNOWN : { value: 'parsed', rule: 'messages' } };
}

/** SkyRL's turn of the last uploaded result; null when its call is not here or the call ids are not SkyRL's. */
function skyrlTurn({ calls, lastResult }: MessageFacts, numTurns: number | null): number | null {
  if (lastResult?.callId == null || numTurns === null) return null;
  const call = calls.find(({ callId }) => callId === lastResult.callId);
  return call?.name == null ? null : turnOfCall(lastResult.callId, call.name, numTurns, calls.indexOf(call) + 1);
}

interface FilledReward {
  reward: number | null;
  reported: number | null;
  mismatch: boolean;
  provenance: FieldProvenance;
}

/** A total is `reported` also when it was computed and the upload says the same. */
function rewardFilled(places: Places, steps: StepRewards, failed: boolean): FilledReward {
  const reported = rewardReportedOf(places);
  const { reward, rule, mismatch } = canonicalReward(steps, reported.value);
  if (failed) return { reward: null, reported: reported.value, mismatch, provenance: UNKNOWN };
  if (rule === null) return { reward, reported: reported.value, mismatch, provenance: UNKNOWN };
  const confirmed = reported.value !== null && !mismatch;
  return { reward, reported: reported.value, mismatch, provenance: confirmed ? reported.provenance : { value: 'parsed', rule } };
}

function rewardFields({ reward, reported }: FilledReward, steps: StepRewards) {
  return {
    reward,
    rewardReported: reported,
    rewardPositive: reward === null ? null : (steps.positive ?? Math.max(reward, 0)),
    rewardSteps: steps.count,
    rewardSum: steps.sum,
    rewardMax: steps.max,
    rewardMin: steps.min,
    rewardFinal: steps.last,
  };
}

/**
 * SkyRL's pass looks at the last step alone, and steps that are not uploaded have reward 0 (skyrl.md 6): the last result counts only
 * if its turn is the last one. Elsewhere the last turn that the policy took. A total without message rewards is one step's.
 */
function lastStepReward(
  source: RolloutSource,
  reward: number,
  { rewards, lastResult }: MessageFacts,
  { lastCallTurn, numTurns }: { lastCallTurn: number | null; numTurns: number | null },
): number | null {
  if (lastCallTurn !== null) return lastCallTurn === numTurns ? (lastResult?.reward ?? 0) : 0;
  return rewards.lastTurn ?? (source === 'skyrl' ? null : reward);
}

function flagsOf(raw: RawRollout, places: Places, facts: MessageFacts, stop: StopReason, mismatch: boolean): number {
  const any = (flag: keyof typeof MESSAGE_FLAGS) => (facts.flags & MESSAGE_FLAGS[flag]) !== 0;
  const set: Record<keyof typeof ROLLOUT_FLAGS, boolean> = {
    reward_mismatch: mismatch,
    stamped_turn: facts.rewards.stamped,
    nonfinite: raw.nonfinite === true || any('nonfinite'),
    parse_error: any('parseError') || stop === 'parse_error',
    orphan_result: facts.orphans,
    subagent: isSubagent(places.start),
    has_image: any('image'),
    has_reasoning: any('reasoning'),
    env_error: stop === 'env_error',
    infra_error: stop === 'infra_error',
    tool_error: facts.callErrors > 0,
    gap: facts.gaps > 0,
    nudge: any('nudge'),
    resumed: findField(places, ['resumed_from_rollout_id'], asText) !== null,
  };
  return (Object.keys(set) as (keyof typeof set)[]).reduce((flags, name) => (set[name] ? flags | ROLLOUT_FLAGS[name] : flags), 0);
}
