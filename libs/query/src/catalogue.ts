import {
  PHASES,
  PROVENANCE_FIELDS,
  PROVENANCES,
  ROLLOUT_STATES,
  STOP_REASONS,
  type MessageType,
  type ProvenanceField,
} from '@palestra/protocol';

export const IS_VALUES = ['finished', 'truncated', 'scored', 'unscored', 'best', 'worst', 'live', 'eval'] as const;
export type IsValue = (typeof IS_VALUES)[number];

/** The values of `has:` that are flags of the rollout row. */
export const ROLLOUT_FLAGS = [
  'image',
  'reasoning',
  'nonfinite',
  'parse_error',
  'orphan',
  'subagent',
  'mismatch',
  'ambiguous_task',
] as const;
export type RolloutFlag = (typeof ROLLOUT_FLAGS)[number];
export const HAS_VALUES = ['error', 'gap', 'note', 'telemetry', ...ROLLOUT_FLAGS] as const;
export type HasValue = (typeof HAS_VALUES)[number];

export const IN_MESSAGE_TYPES = {
  assistant: 'assistant_message',
  tool: 'tool_result',
  args: 'tool_call',
  reasoning: 'reasoning',
  user: 'user_message',
  system: 'system_message',
} as const satisfies Record<string, MessageType>;
export type InValue = keyof typeof IN_MESSAGE_TYPES;

/**
 * text: a word, a quoted text or a regex. integer, number, duration (milliseconds unless a unit follows): compared, ranges.
 * time: dates and ages. enum, boolean, uuid, bigint (an id that may be longer than a double is exact), failure (a fingerprint or a class):
 * equality only.
 */
export type QueryKeyKind = 'text' | 'integer' | 'number' | 'duration' | 'time' | 'enum' | 'boolean' | 'uuid' | 'bigint' | 'failure';

export interface QueryKeyEntry {
  key: string;
  kind: QueryKeyKind;
  /** The values of an enumeration. */
  values?: readonly string[];
  /** Whether `key:null` is allowed and means "not known". */
  nullable: boolean;
  description: string;
  example: string;
}

const nullable = true;
const text = (description: string, example: string) => ({ kind: 'text', nullable: false, description, example }) as const;
const integer = (description: string, example: string) => ({ kind: 'integer', nullable: false, description, example }) as const;
const number = (description: string, example: string) => ({ kind: 'number', nullable, description, example }) as const;
const choice = (values: readonly string[], description: string, example: string) =>
  ({ kind: 'enum', values, nullable: false, description, example }) as const;

const entries = {
  id: { kind: 'uuid', nullable: false, description: 'id of the rollout', example: 'id:0d9e3c1a-7a3e-4b57-9a39-0d3f8a4c2b11' },
  name: { ...text('name of the rollout', 'name:/^whodunit-/'), nullable },
  run: text('name or id of the run', 'run:skyrl-openreward'),
  env: { ...text('environment', 'env:palestra/whodunit'), nullable },
  'env.version': { ...text('version of the environment, from the session or as uploaded', 'env.version:3'), nullable },
  split: { ...text('split of the task', 'split:train,validation'), nullable },
  phase: choice(PHASES, 'training, evaluation or unknown', 'phase:eval'),
  task: { ...text('key of the task, or its index in the split', 'task:17'), nullable },
  group: { kind: 'bigint', nullable, description: 'key of the group', example: 'group:4611686018427387904' },
  sample: { ...integer('index of the sample in its group', 'sample:0..3'), nullable },
  model: { ...text('model', 'model:/qwen/i'), nullable },
  tag: text('tag of the rollout', 'tag:"to review"'),
  verdict: text('verdict of an annotation', 'verdict:exploit'),
  note: text('text in the note of an annotation, ignoring case', 'note:"format only"'),
  author: text('author of an annotation', 'author:ana'),
  step: { ...integer('training step', 'step:120..140'), nullable },
  policy_step: { ...integer('step of the policy that played the rollout', 'policy_step:>=100'), nullable },
  reward: number('reward; null is unscored and never 0', 'reward:<0.2'),
  turns: { ...integer('turns of the model', 'turns:>8'), nullable },
  calls: integer('tool calls', 'calls:0'),
  msgs: integer('messages', 'msgs:>100'),
  tok: { ...integer('tokens of the model and of tools', 'tok:>8000'), nullable },
  bytes: integer('bytes of all messages', 'bytes:>1000000'),
  dur: { kind: 'duration', nullable, description: 'duration; milliseconds, or with ms, s, m, h, d, w', example: 'dur:>2m' },
  lat: { kind: 'duration', nullable, description: 'latency of the tools; milliseconds, or with a unit', example: 'lat:>500ms' },
  received: {
    kind: 'time',
    nullable: false,
    description: 'when the rollout was received: an age (2h: in the last two hours, >2d: longer ago), or dates in UTC, last day included',
    example: 'received:2026-11-01..2026-11-20',
  },
  stop: choice(STOP_REASONS, 'why the rollout ended', 'stop:max_turns,max_tokens'),
  failure: {
    kind: 'failure',
    nullable,
    description: 'cause of the failure: a fingerprint of the Failures page, or a failure class (policy, environment, infrastructure)',
    example: 'failure:infrastructure',
  },
  state: choice(ROLLOUT_STATES, 'state of the upload', 'state:live'),
  tool: text('name of a tool that was called', 'tool:bash'),
  'tool.error': text('name of a tool with a failed call', 'tool.error:bash'),
  is: choice(IS_VALUES, 'property of the rollout; best and worst in its group', 'is:truncated'),
  in: choice(Object.keys(IN_MESSAGE_TYPES), 'types of messages in which to find the texts of the query', 'in:assistant "I give up"'),
  has: choice(HAS_VALUES, 'what the rollout contains', 'has:error'),
  'group.n': { ...integer('rollouts received in its group', 'group.n:<4'), nullable },
  'group.mean': number('mean reward of its group’s scored rollouts', 'group.mean:0.1..0.9'),
  'group.std': number('standard deviation (ddof 1) of its group’s rewards; 0 when they differ by at most 1e-6', 'group.std:0'),
  'group.pass': number('successes per scored rollout of its group', 'group.pass:>0'),
  'group.complete': { kind: 'boolean', nullable, description: 'all rollouts of its group were received', example: 'group.complete:false' },
} as const satisfies Record<string, Omit<QueryKeyEntry, 'key'>>;

const provenance = choice(PROVENANCES, 'provenance of the field', 'prov.step:inferred');

export type QueryKey = keyof typeof entries | `prov.${ProvenanceField}`;

/** Every key of the language, in the order of the documentation. Errors, docs and completions use it. */
export const QUERY_KEYS: readonly (QueryKeyEntry & { key: QueryKey })[] = [
  ...Object.entries(entries).map(([key, entry]) => ({ key: key as QueryKey, ...entry })),
  ...PROVENANCE_FIELDS.map((field) => ({
    ...provenance,
    key: `prov.${field}` as const,
    description: `provenance of ${field}`,
    example: `prov.${field}:inferred`,
  })),
];

const byKey = new Map<string, QueryKeyEntry & { key: QueryKey }>(QUERY_KEYS.map((entry) => [entry.key, entry]));

export function findKey(key: string): (QueryKeyEntry & { key: QueryKey }) | undefined {
  return byKey.get(key);
}
