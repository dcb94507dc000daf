import type { Provenance } from '@palestra/protocol';
import { type FieldProvenance, type NormalisedRollout, type RolloutFlag, rolloutFlagNames } from '@palestra/rollouts';
import { formatCount, formatReward } from '../format/number.ts';
import type { CheckedRollout } from './read.ts';

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

export interface ResolvedField {
  name: string;
  /** Null: not known from this upload alone. */
  value: string | null;
  provenance: Provenance;
  /** In words. */
  rule: string;
  /** Where it was read, as a path into the event; null where nothing was. */
  source: string | null;
}

/** Rules of the normaliser that are no path into the event: what they did, and with what. */
const RULES: Readonly<Record<string, readonly [rule: string, source: string]>> = {
  'name.step': ['`-step…` at the name’s end', 'rolloutName'],
  arrival: ['the order in which samples reach the store', 'rollout'],
  'name.sample': ['`-r…` at the name’s end', 'rolloutName'],
  'name.index': ['the index at the name’s end', 'rolloutName'],
  'name.hash': ['the hash in the name', 'rolloutName'],
  task_spec: ['SHA-256 of its canonical JSON', 'task_spec'],
  prompt: ['hash of the first prompt', 'messages'],
  split: ['what the split is for', 'split'],
  messages: ['counted from the messages', 'messages'],
  'messages.sum': ['the sum of the message rewards', 'messages[].reward'],
  reported: ['the total that was sent', 'metadata'],
  is_finished: ['a message ends the episode', 'messages[].isFinished'],
  'bytes/4': ['UTF-8 bytes by four', 'messages'],
  'skyrl.turn': ['the turn in the last call id, against num_turns', 'messages[].callId'],
  'skyrl.no_call': ['SkyRL says so when no tool ran', 'metadata.stop_reason'],
};

/** Unknown fields that all rollouts of a run together can still tell (dashboard.md 2.3 and 2.4). */
const LATER: Readonly<Record<string, string>> = {
  step: 'inferred, once its run is here',
  group: 'inferred, with the step',
  sample: 'inferred, by arrival',
};

function explain(name: string, { value, rule }: FieldProvenance): Pick<ResolvedField, 'rule' | 'source'> {
  if (value === 'unknown') return { rule: LATER[name] ?? 'not in the upload', source: null };
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
  const known = parts.flatMap(([count, what]) => (count === null ? [] : [`${formatCount(count)} ${what}`]));
  return `${provenance.tokens.value === 'inferred' ? '≈' : ''}${known.join(', ')}`;
}

/** The fields that pages sort, group and draw by, in the order in which a reader asks for them. */
export function fieldsOf({ result, start }: CheckedRollout): ResolvedField[] {
  const { provenance: known } = result;
  const field = (name: string, value: string | null, provenance: FieldProvenance): ResolvedField => ({
    name,
    value,
    provenance: provenance.value,
    ...explain(name, provenance),
  });
  // Not by `explain`: as a rule `split` stands for the phase.
  const asItStands = (name: string, value: string | null): ResolvedField =>
    value === null
      ? field(name, null, { value: 'unknown', rule: null })
      : { name, value, provenance: 'reported', rule: 'as sent', source: name };
  const tokensField = (): ResolvedField => {
    const resolved = field('tokens', tokensText(result), known.tokens);
    if (!resolved.source?.startsWith('tokens.')) return resolved;
    const metadata = start?.raw['metadata'];
    return {
      ...resolved,
      source: `${isObject(metadata) && isObject(metadata['tokens']) ? 'metadata' : 'rollout_info'}.${resolved.source}`,
    };
  };
  return [
    field('run', start?.runName ?? null, reportedAs(start, 'runName')),
    asItStands('environment', result.environment),
    asItStands('split', result.split),
    field('task', result.taskIndex === null ? result.taskKey : String(result.taskIndex), result.taskProvenance),
    field('step', asText(result.step), known.step),
    field('policy step', asText(result.policyStep), reportedAs(result.policyStep, 'metadata.policy_step')),
    field('group', result.groupId, known.group),
    field('sample', known.sample.value === 'inferred' ? 'by arrival' : asText(result.sampleIdx), known.sample),
    field('group size', asText(result.groupSize), reportedAs(result.groupSize, 'metadata.n_samples')),
    field('phase', result.phase, known.phase),
    field('reward', result.reward === null ? null : formatReward(result.reward, { digits: 3 }), known.reward),
    field('stop', result.stop === 'unknown' ? null : result.stop, known.stop),
    field('turns', asText(result.turns), known.turns),
    tokensField(),
    field('session', result.sessionId, known.telemetry),
  ];
}

export interface Missing {
  /** The path of the recommended contract (dashboard.md 2.8). */
  key: string;
  /** What pages lack or guess without it. */
  without: string;
  /** The same key in a place where nothing reads it. */
  stray: string | null;
}

/** The recommended contract: where each key belongs, when it counts as sent, and what its absence costs. */
const CONTRACT: readonly [place: 'metadata' | 'rollout_info', key: string, sent: (r: NormalisedRollout) => boolean, without: string][] = [
  ['rollout_info', 'current_step', (r) => r.provenance.step.value === 'reported', 'steps are read from names or inferred from arrival'],
  ['rollout_info', 'task_index', (r) => r.taskProvenance.value === 'reported', 'tasks are told apart by name, task_spec or prompt'],
  [
    'metadata',
    'group_id',
    (r) => r.provenance.group.value === 'reported',
    'groups are tasks at a step: a task drawn twice in one is one group',
  ],
  ['metadata', 'sample_idx', (r) => r.provenance.sample.value === 'reported', 'samples are numbered by arrival'],
  ['metadata', 'n_samples', (r) => r.groupSize !== null, 'missing siblings cannot be told'],
  ['metadata', 'phase', (r) => r.provenance.phase.value === 'reported', 'evaluation on the training split counts as training'],
  ['metadata', 'policy_step', (r) => r.policyStep !== null, 'how old the policy was is not known'],
  ['metadata', 'reward_total', (r) => r.rewardReported !== null, 'the total is the sum of message rewards, unconfirmed'],
  ['metadata', 'stop_reason', (r) => r.stopRaw !== null, 'why it ended is guessed, or unknown'],
  ['metadata', 'num_turns', (r) => r.provenance.turns.value === 'reported', 'turns that were not uploaded do not count'],
  ['metadata', 'session_id', (r) => r.sessionId !== null, 'latency and errors of tools are joined by likeness, or not at all'],
  ['metadata', 'tokens', (r) => r.provenance.tokens.value === 'reported', 'tokens are bytes by four'],
];

function strayOf(start: Record<string, unknown>, place: string, key: string): string | null {
  if (Object.hasOwn(start, key)) return key;
  const found = ['metadata', 'rollout_info', 'run_info'].find(
    (other) => other !== place && isObject(start[other]) && Object.hasOwn(start[other], key),
  );
  return found === undefined ? null : `${found}.${key}`;
}

/** Keys of the recommended contract that this upload does not have. */
export const missingOf = ({ result, start }: CheckedRollout): Missing[] =>
  CONTRACT.filter(([, , sent]) => !sent(result)).map(([place, key, , without]) => ({
    key: `${place}.${key}`,
    without,
    stray: start === null ? null : strayOf(start.raw, place, key),
  }));

const FLAGS: Partial<Record<RolloutFlag, string>> = {
  reward_mismatch: 'the reported total is not the sum of the message rewards',
  stamped_turn: 'one reward stands on several events of a turn: it counts once',
  nonfinite: 'a NaN or Infinity was sent: it is stored as null',
  orphan_result: 'a tool result has no call of its id',
  gap: 'messages are missing between those that are here',
  tool_error: 'a tool result is an error',
  parse_error: 'a call could not be parsed',
};

/** What is odd about it, in words. */
export const oddities = ({ result }: CheckedRollout): string[] => rolloutFlagNames(result.flags).flatMap((flag) => FLAGS[flag] ?? []);
