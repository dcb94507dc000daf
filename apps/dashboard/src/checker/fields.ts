import type { Provenance } from '@palestra/protocol';
import { type FieldProvenance, type NormalisedRollout, type RolloutFlag, rolloutFlagNames } from '@palestra/rollouts';
import { formatCount, formatReward } from '../format/number.ts';
import type { CheckedRollout } from './check.ts';

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

export interface ResolvedField {
  name: string;
  /** Null if this upload alone does not give the value. */
  value: string | null;
  provenance: Provenance;
  /** The rule as text. */
  rule: string;
  /** Path of the value in the event; null if the value is unknown. */
  source: string | null;
}

/** Rules of the normaliser that are no path into the event: text and source. */
const RULES: Readonly<Record<string, readonly [rule: string, source: string]>> = {
  'name.step': ['`-step…` at the end of the name', 'rolloutName'],
  arrival: ['the order of arrival', 'rollout'],
  'name.sample': ['`-r…` at the end of the name', 'rolloutName'],
  'name.index': ['the index at the end of the name', 'rolloutName'],
  'name.hash': ['the hash in the name', 'rolloutName'],
  task_spec: ['SHA-256 of its canonical JSON', 'task_spec'],
  prompt: ['hash of the first prompt', 'messages'],
  split: ['the name of the split', 'split'],
  messages: ['counted from the messages', 'messages'],
  'messages.sum': ['the sum of the message rewards', 'messages[].reward'],
  reported: ['the reported total', 'metadata'],
  is_finished: ['a message finishes the episode', 'messages[].isFinished'],
  'bytes/4': ['UTF-8 bytes divided by 4', 'messages'],
  'skyrl.turn': ['the turn of the last call id, compared with num_turns', 'messages[].callId'],
  'skyrl.no_call': ['SkyRL reports this when no tool ran', 'metadata.stop_reason'],
};

/** Fields that the server infers from all rollouts of the run (docs/reference/metrics.md#step-inference). */
const INFERRED_LATER: Readonly<Record<string, string>> = {
  step: 'inferred from the whole run',
  group: 'inferred with the step',
  sample: 'inferred from the order of arrival',
};

function explain(name: string, { value, rule }: FieldProvenance): Pick<ResolvedField, 'rule' | 'source'> {
  if (value === 'unknown') return { rule: INFERRED_LATER[name] ?? 'not in the upload', source: null };
  const known = rule === null ? undefined : RULES[rule];
  if (known) return { rule: known[0], source: known[1] };
  if (rule?.includes('+')) {
    const parts = rule.split('+').map((part) => RULES[part]?.[1] ?? part);
    return { rule: 'the samples of one task in one step', source: [...new Set(parts)].join(' + ') };
  }
  return { rule: 'as sent', source: rule };
}

const reportedAs = (value: unknown, source: string): FieldProvenance =>
  value === null ? { value: 'unknown', rule: null } : { value: 'reported', rule: source };
const asText = (value: number | string | null): string | null => (value === null ? null : String(value));

function tokensText({ tokensOut, tokensTool, tokensPrompt, provenance }: NormalisedRollout): string | null {
  if (tokensOut === null) return null;
  const parts = [
    [tokensOut, 'written'],
    [tokensTool, 'of tools'],
    [tokensPrompt, 'of the prompt'],
  ] as const;
  const known = parts.flatMap(([count, kind]) => (count === null ? [] : [`${formatCount(count)} ${kind}`]));
  return `${provenance.tokens.value === 'inferred' ? '≈' : ''}${known.join(', ')}`;
}

/** The fields that pages use, in the order of the table. */
export function fieldsOf({ normalised, start }: CheckedRollout): ResolvedField[] {
  const { provenance } = normalised;
  const field = (name: string, value: string | null, fieldProvenance: FieldProvenance): ResolvedField => ({
    name,
    value,
    provenance: fieldProvenance.value,
    ...explain(name, fieldProvenance),
  });
  // Without `explain`, because its rule `split` explains the phase.
  const sentField = (name: string, value: string | null): ResolvedField =>
    value === null
      ? field(name, null, { value: 'unknown', rule: null })
      : { name, value, provenance: 'reported', rule: 'as sent', source: name };
  const tokensField = (): ResolvedField => {
    const resolved = field('tokens', tokensText(normalised), provenance.tokens);
    if (!resolved.source?.startsWith('tokens.')) return resolved;
    const metadata = start?.raw['metadata'];
    return {
      ...resolved,
      source: `${isObject(metadata) && isObject(metadata['tokens']) ? 'metadata' : 'rollout_info'}.${resolved.source}`,
    };
  };
  return [
    field('run', start?.runName ?? null, reportedAs(start, 'runName')),
    sentField('environment', normalised.environment),
    sentField('split', normalised.split),
    field('task', normalised.taskIndex === null ? normalised.taskKey : String(normalised.taskIndex), normalised.taskProvenance),
    field('step', asText(normalised.step), provenance.step),
    field('policy step', asText(normalised.policyStep), reportedAs(normalised.policyStep, 'metadata.policy_step')),
    field('group', normalised.groupId, provenance.group),
    field('sample', provenance.sample.value === 'inferred' ? 'by arrival' : asText(normalised.sampleIdx), provenance.sample),
    field('group size', asText(normalised.groupSize), reportedAs(normalised.groupSize, 'metadata.n_samples')),
    field('phase', normalised.phase, provenance.phase),
    field('reward', normalised.reward === null ? null : formatReward(normalised.reward), provenance.reward),
    field('stop reason', normalised.stop === 'unknown' ? null : normalised.stop, provenance.stop),
    field('turns', asText(normalised.turns), provenance.turns),
    tokensField(),
    field('session', normalised.sessionId, provenance.telemetry),
  ];
}

export interface MissingField {
  /** Path of the field (docs/reference/metrics.md#recommended-fields). */
  key: string;
  /** What pages show without it. */
  effect: string;
  /** Path at which the upload has the same key, and the server does not read it. */
  misplaced: string | null;
}

/** The recommended fields: parent object, key, whether an upload has it, and the effect of its absence. */
const RECOMMENDED: readonly [
  parent: 'metadata' | 'rollout_info',
  key: string,
  isSent: (r: NormalisedRollout) => boolean,
  effect: string,
][] = [
  ['rollout_info', 'current_step', (r) => r.provenance.step.value === 'reported', 'steps are parsed from names or inferred from arrival'],
  ['rollout_info', 'task_index', (r) => r.taskProvenance.value === 'reported', 'tasks are identified by name, task_spec or prompt'],
  [
    'metadata',
    'group_id',
    (r) => r.provenance.group.value === 'reported',
    'a group is a task in a step, so a task that is drawn twice gives one group',
  ],
  ['metadata', 'sample_idx', (r) => r.provenance.sample.value === 'reported', 'samples are numbered by arrival'],
  ['metadata', 'n_samples', (r) => r.groupSize !== null, 'missing samples are not detected'],
  ['metadata', 'phase', (r) => r.provenance.phase.value === 'reported', 'evaluation on the training split counts as training'],
  ['metadata', 'policy_step', (r) => r.policyStep !== null, 'the age of the policy is unknown'],
  ['metadata', 'reward_total', (r) => r.rewardReported !== null, 'the total is the sum of message rewards, which nothing confirms'],
  ['metadata', 'stop_reason', (r) => r.stopRaw !== null, 'the stop reason is inferred or unknown'],
  ['metadata', 'num_turns', (r) => r.provenance.turns.value === 'reported', 'turns that are not uploaded do not count'],
  ['metadata', 'session_id', (r) => r.sessionId !== null, 'latency and errors of tools are matched by similarity, or missing'],
  ['metadata', 'tokens', (r) => r.provenance.tokens.value === 'reported', 'tokens are bytes divided by 4'],
];

function misplacedPath(start: Record<string, unknown>, parent: string, key: string): string | null {
  if (Object.hasOwn(start, key)) return key;
  const found = ['metadata', 'rollout_info', 'run_info'].find(
    (other) => other !== parent && isObject(start[other]) && Object.hasOwn(start[other], key),
  );
  return found === undefined ? null : `${found}.${key}`;
}

/** The recommended fields that this upload does not have. */
export const missingFieldsOf = ({ normalised, start }: CheckedRollout): MissingField[] =>
  RECOMMENDED.filter(([, , isSent]) => !isSent(normalised)).map(([parent, key, , effect]) => ({
    key: `${parent}.${key}`,
    effect,
    misplaced: start === null ? null : misplacedPath(start.raw, parent, key),
  }));

const FLAGS: Partial<Record<RolloutFlag, string>> = {
  reward_mismatch: 'The reported total is not the sum of the message rewards',
  stamped_turn: 'Several events of a turn have the same reward, which counts once',
  nonfinite: 'A value is NaN or Infinity and is stored as null, or a reward exceeds single precision',
  orphan_result: 'A tool result has no call with its id',
  gap: 'Messages in between are missing',
  tool_error: 'A tool result is an error',
  parse_error: 'A call could not be parsed',
};

/** The flags of the rollout as texts. */
export const warningsOf = ({ normalised }: CheckedRollout): string[] =>
  rolloutFlagNames(normalised.flags).flatMap((flag) => FLAGS[flag] ?? []);
