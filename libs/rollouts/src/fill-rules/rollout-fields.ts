import type { JsonObject } from '@palestra/protocol';
import { asCount, asId, asNumber, asObject, asReward, asText, type Found, findField, memberOf } from '../json/fields.ts';
import { cutText } from '../json/tolerant-json.ts';
import type { NameParts } from '../provenance/name-regex.ts';
import { type FieldProvenance, UNKNOWN } from '../provenance/provenance.ts';
import { type KnownPhase, groupKeyOf, reportedGroup, taskOfVariant } from './group-key.ts';
import type { TaskKey } from './task-key.ts';

/**
 * Fields of a rollout by the fill rules (docs/reference/metrics.md#fill-rules): reported before parsed before inferred. Fields of
 * `metadata` are also read from `rollout_info`, because live uploads know some of them only at the end.
 */
export interface UploadParts {
  start: JsonObject;
  metadata: JsonObject;
  runInfo: JsonObject;
  info: JsonObject;
  /** Matches of the owner's regex in the name. */
  name: NameParts | null;
}

export interface Filled<T> {
  value: T | null;
  provenance: FieldProvenance;
}

const reported = <T>(value: T, rule: string): Filled<T> => ({ value, provenance: { value: 'reported', rule } });
const parsed = <T>(value: T, rule: string): Filled<T> => ({ value, provenance: { value: 'parsed', rule } });
const unknown = { value: null, provenance: UNKNOWN };

function fromField<T>(parts: UploadParts, keys: readonly string[], read: (value: unknown) => T | null): Filled<T> | null {
  const found = findField(parts, keys, read);
  return found === null ? null : reported(found.value, found.key);
}

const rolloutName = ({ start }: UploadParts): string => asText(memberOf(start, 'rolloutName')) ?? '';

/** Steps count from 0. A negative step is unknown, because the store uses -1 for that. */
export function stepOf(parts: UploadParts): Filled<number> {
  const event = asCount(memberOf(parts.start, 'step'));
  if (event !== null) return reported(event, 'step');
  const current = asCount(memberOf(parts.info, 'current_step'));
  if (current !== null) return reported(current, 'rollout_info.current_step');
  const field = fromField(parts, ['step', 'global_step', 'training_step'], asCount);
  if (field !== null) return field;
  if (parts.name?.step != null) return parsed(parts.name.step, 'settings.name_regex');
  const step = asCount(Number(/-step(\d{1,10})-r\d{1,10}$/.exec(rolloutName(parts))?.[1]));
  return step === null ? unknown : parsed(step, 'name.step');
}

export function sampleOf(parts: UploadParts): Filled<number> {
  const field = fromField(parts, ['sample_idx', 'rollout_idx', 'repetition_id', 'sample'], asCount);
  if (field !== null) return field;
  if (parts.name?.sample != null) return parsed(parts.name.sample, 'settings.name_regex');
  const sample = asCount(Number(/-r(\d{1,10})$/.exec(rolloutName(parts))?.[1]));
  return sample === null ? unknown : parsed(sample, 'name.sample');
}

/** Words for the two phases. Other words, such as `adhoc`, are neither. */
const PHASES: Record<string, KnownPhase> = {
  train: 'train',
  training: 'train',
  eval: 'eval',
  evaluation: 'eval',
  val: 'eval',
  valid: 'eval',
  validation: 'eval',
  test: 'eval',
};
const asPhase = (value: unknown): KnownPhase | null => {
  const word = asText(value)?.toLowerCase();
  return word !== undefined && Object.hasOwn(PHASES, word) ? PHASES[word]! : null;
};

/**
 * A split for evaluation determines the phase. A split `train` only suggests it, because SkyRL can evaluate on the training split under
 * the same name.
 */
export function phaseOf(parts: UploadParts): Filled<KnownPhase> {
  const field = fromField(parts, ['phase'], asPhase);
  if (field !== null) return field;
  const runType = asPhase(memberOf(parts.runInfo, 'run_type'));
  if (runType !== null) return reported(runType, 'run_info.run_type');
  const split = asPhase(memberOf(parts.start, 'split'));
  if (split === 'eval') return parsed(split, 'split');
  return split === null ? unknown : { value: split, provenance: { value: 'inferred', rule: 'split' } };
}

export interface FilledGroup extends Filled<string> {
  /** `groupKeyOf` of it. */
  key: string | null;
}

/**
 * A group belongs to one step of one environment. Both are part of the key also for reported ids, which repeat in each epoch and
 * environment. Without a reported id the key is parsed from task and step if both are known; otherwise step inference decides
 * (step-inference.ts).
 */
export function groupOf(parts: UploadParts, task: TaskKey, step: Filled<number>, phase: KnownPhase | null): FilledGroup {
  const field = fromField(parts, ['group_id', 'uid', 'prompt_id', 'instance_id'], asId);
  const [environment, variant] = [asText(memberOf(parts.start, 'environment')), asText(memberOf(parts.start, 'variant'))];
  if (field !== null) return { ...field, key: groupKeyOf(phase, reportedGroup(field.value!, environment, variant), step.value) };
  if (task.key === null || step.value === null) return { ...unknown, key: null };
  const key = groupKeyOf(phase, taskOfVariant(task.key, variant), step.value);
  return { ...parsed(key, `${task.provenance.rule}+${step.provenance.rule}`), key };
}

const REPORTED_REWARDS = ['reward_total', 'total_reward', 'reward_sum', 'reward', 'final_reward'];

export const rewardReportedOf = (parts: UploadParts): Filled<number> => fromField(parts, REPORTED_REWARDS, asReward) ?? unknown;

/** Whether a reported total is beyond single precision. It counts as not reported. */
export const isReportedOutOfRange = (parts: UploadParts): boolean =>
  findField(parts, REPORTED_REWARDS, (value) => (asNumber(value) !== null && asReward(value) === null ? true : null)) !== null;

export const turnsReportedOf = (parts: UploadParts): Filled<number> => fromField(parts, ['num_turns'], asCount) ?? unknown;

/** The reported text, cut to 256 characters. */
export function stopRawOf(parts: UploadParts): Found<string> | null {
  const found = findField(parts, ['stop_reason', 'stop'], asText);
  return found === null ? null : { ...found, value: cutText(found.value, 256) };
}

export interface Tokens {
  output: number | null;
  tool: number | null;
  prompt: number | null;
  provenance: FieldProvenance;
}

/** Reported token counts. Without them an estimate: UTF-8 bytes / 4 of the messages of the policy and of tools. */
export function tokensOf(parts: UploadParts, bytes: { policy: number; results: number } | null): Tokens {
  const nested = asObject(findField(parts, ['tokens'], (value) => (Object.keys(asObject(value)).length > 0 ? value : null))?.value);
  const read = (inner: string, ...keys: string[]): Filled<number> => {
    const value = asCount(memberOf(nested, inner));
    return value !== null ? reported(value, `tokens.${inner}`) : (fromField(parts, keys, asCount) ?? unknown);
  };
  const output = read('output', 'output_tokens', 'completion_tokens', 'response_tokens', 'response_length', 'num_tokens');
  const tool = read('tool', 'tool_tokens');
  const prompt = read('prompt', 'prompt_tokens', 'input_tokens', 'prompt_length');
  if (output.value !== null || bytes === null) {
    return { output: output.value, tool: tool.value, prompt: prompt.value, provenance: output.provenance };
  }
  return {
    output: Math.ceil(bytes.policy / 4),
    tool: tool.value ?? Math.ceil(bytes.results / 4),
    prompt: prompt.value,
    provenance: { value: 'inferred', rule: 'bytes/4' },
  };
}
