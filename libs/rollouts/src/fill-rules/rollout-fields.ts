import type { JsonObject } from '@palestra/protocol';
import { asCount, asId, asObject, asReward, asText, type Found, findField, own } from '../json/fields.ts';
import { cutText } from '../json/tolerant-json.ts';
import type { NameParts } from '../provenance/name-regex.ts';
import { type FieldProvenance, UNKNOWN } from '../provenance/provenance.ts';
import { type KnownPhase, groupKeyOf, reportedGroup, taskOfVariant } from './group-key.ts';
import type { TaskKey } from './task-key.ts';

/**
 * The single fields of a rollout by the fill rules of dashboard.md 2.3, 2.8 and 14.1: reported before parsed before inferred. What the
 * contract puts into `metadata` is also read from `rollout_info`, because an integration that uploads live knows it only at the end.
 */
export interface Places {
  start: JsonObject;
  metadata: JsonObject;
  runInfo: JsonObject;
  info: JsonObject;
  /** What the owner's regex found in the name. */
  name: NameParts | null;
}

export interface Filled<T> {
  value: T | null;
  provenance: FieldProvenance;
}

const reported = <T>(value: T, rule: string): Filled<T> => ({ value, provenance: { value: 'reported', rule } });
const parsed = <T>(value: T, rule: string): Filled<T> => ({ value, provenance: { value: 'parsed', rule } });
const unknown = { value: null, provenance: UNKNOWN };

function fromField<T>(places: Places, keys: readonly string[], read: (value: unknown) => T | null): Filled<T> | null {
  const found = findField(places, keys, read);
  return found === null ? null : reported(found.value, found.key);
}

const rolloutName = ({ start }: Places): string => asText(own(start, 'rolloutName')) ?? '';

/** From 0: a step below is none, as the store has no place for it (-1 stands for a step that is not known). */
export function stepOf(places: Places): Filled<number> {
  const event = asCount(own(places.start, 'step'));
  if (event !== null) return reported(event, 'step');
  const current = asCount(own(places.info, 'current_step'));
  if (current !== null) return reported(current, 'rollout_info.current_step');
  const field = fromField(places, ['step', 'global_step', 'training_step'], asCount);
  if (field !== null) return field;
  if (places.name?.step != null) return parsed(places.name.step, 'settings.name_regex');
  const step = asCount(Number(/-step(\d{1,10})-r\d{1,10}$/.exec(rolloutName(places))?.[1]));
  return step === null ? unknown : parsed(step, 'name.step');
}

export function sampleOf(places: Places): Filled<number> {
  const field = fromField(places, ['sample_idx', 'rollout_idx', 'repetition_id'], asCount);
  if (field !== null) return field;
  if (places.name?.sample != null) return parsed(places.name.sample, 'settings.name_regex');
  const sample = asCount(Number(/-r(\d{1,10})$/.exec(rolloutName(places))?.[1]));
  return sample === null ? unknown : parsed(sample, 'name.sample');
}

/** Words for the two phases; anything else (`adhoc`) is neither. */
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
 * A split for evaluation tells the phase. A split `train` only suggests it: SkyRL evaluates on the training split under the same names
 * when it is told to.
 */
export function phaseOf(places: Places): Filled<KnownPhase> {
  const field = fromField(places, ['phase'], asPhase);
  if (field !== null) return field;
  const runType = asPhase(own(places.runInfo, 'run_type'));
  if (runType !== null) return reported(runType, 'run_info.run_type');
  const split = asPhase(own(places.start, 'split'));
  if (split === 'eval') return parsed(split, 'split');
  return split === null ? unknown : { value: split, provenance: { value: 'inferred', rule: 'split' } };
}

export interface FilledGroup extends Filled<string> {
  /** `groupKeyOf` of it. */
  key: string | null;
}

/**
 * A group belongs to one step of one environment, so both are part of its key also where the id is reported: ids of prompts come back
 * each epoch, and in each environment.
 * Without a reported id it is parsed when task and step are known for certain; else only the run as a whole can tell (step-inference.ts).
 */
export function groupOf(places: Places, task: TaskKey, step: Filled<number>, phase: KnownPhase | null): FilledGroup {
  const field = fromField(places, ['group_id', 'uid', 'prompt_id', 'instance_id'], asId);
  const [environment, variant] = [asText(own(places.start, 'environment')), asText(own(places.start, 'variant'))];
  if (field !== null) return { ...field, key: groupKeyOf(phase, reportedGroup(field.value!, environment, variant), step.value) };
  if (task.key === null || step.value === null) return { ...unknown, key: null };
  const key = groupKeyOf(phase, taskOfVariant(task.key, variant), step.value);
  return { ...parsed(key, `${task.provenance.rule}+${step.provenance.rule}`), key };
}

export const rewardReportedOf = (places: Places): Filled<number> =>
  fromField(places, ['reward_total', 'total_reward', 'reward_sum', 'reward', 'final_reward'], asReward) ?? unknown;

export const turnsReportedOf = (places: Places): Filled<number> => fromField(places, ['num_turns'], asCount) ?? unknown;

/** As it was sent, at most 256 characters. */
export function stopRawOf(places: Places): Found<string> | null {
  const found = findField(places, ['stop_reason', 'stop'], asText);
  return found === null ? null : { ...found, value: cutText(found.value, 256) };
}

export interface Tokens {
  output: number | null;
  tool: number | null;
  prompt: number | null;
  provenance: FieldProvenance;
}

/** Reported counts. Without any: UTF-8 bytes / 4 of what the policy and the tools wrote, which is only an estimate. */
export function tokensOf(places: Places, bytes: { policy: number; results: number } | null): Tokens {
  const nested = asObject(findField(places, ['tokens'], (value) => (Object.keys(asObject(value)).length > 0 ? value : null))?.value);
  const read = (inner: string, ...keys: string[]): Filled<number> => {
    const value = asCount(own(nested, inner));
    return value !== null ? reported(value, `tokens.${inner}`) : (fromField(places, keys, asCount) ?? unknown);
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
