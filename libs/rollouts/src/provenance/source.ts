import type { JsonObject, MessageType, RolloutSource } from '@palestra/protocol';
import { asObject, asText, own } from '../json/fields.ts';

/** Beginnings of `run_info.framework`, lower case. */
const FRAMEWORKS: readonly [string, RolloutSource][] = [
  ['skyrl', 'skyrl'],
  ['slime', 'slime/miles'],
  ['miles', 'slime/miles'],
  ['tinker', 'tinker'],
  ['firehorse', 'firehorse'],
  ['palestra', 'palestra'],
  ['verl', 'verl'],
  ['trl', 'trl'],
  ['prime-rl', 'prime-rl'],
  ['prime_rl', 'prime-rl'],
  ['rllm', 'rllm'],
];

/** Names that the integrations give (dashboard.md 2.1). `prefixes`: what a name of this environment and split may begin with. */
const TINKER_TAIL = /^(\d{1,10})-step(\d{1,10})-r(\d{1,10})$/;
export const SLIME_TAIL = /^([0-9a-f]{6,64})-[0-9a-f]{8}$/;
const SUBAGENT = /^trial_.+_subagent_/;

/** The rest of a name behind `{environment}-` or `{environment}-{split}-`, with the environment as it is or with `/` as `-`. */
export function tailOfName(name: string | null, environment: string | null, split?: string | null): string | null {
  if (name === null || environment === null || split === null) return null;
  for (const spelled of [environment.replaceAll('/', '-'), environment]) {
    const prefix = split === undefined ? `${spelled}-` : `${spelled}-${split}-`;
    if (name.startsWith(prefix)) return name.slice(prefix.length);
  }
  return null;
}

export interface SourceFacts {
  start: JsonObject;
  types: ReadonlySet<MessageType>;
}

/** First that applies: the framework that the client names, keys of the metadata together with the name's pattern, `generic`. */
export function sourceOf({ start, types }: SourceFacts): RolloutSource {
  const framework = asText(own(asObject(own(start, 'run_info')), 'framework'))?.toLowerCase();
  const known = framework === undefined ? undefined : FRAMEWORKS.find(([begin]) => framework.startsWith(begin));
  if (known !== undefined) return known[1];
  const metadata = asObject(own(start, 'metadata'));
  const has = (...keys: string[]) => keys.every((key) => Object.hasOwn(metadata, key));
  const name = asText(own(start, 'rolloutName'));
  const environment = asText(own(start, 'environment'));
  const tail = tailOfName(name, environment, asText(own(start, 'split')));
  if (has('step', 'rollout_idx', 'stop') && tail !== null && TINKER_TAIL.test(tail)) return 'tinker';
  if (has('stop_reason', 'total_reward', 'num_turns') && tail !== null && /^\d{1,10}$/.test(tail)) return 'skyrl';
  // `reward_sum` is left out when there was no reward.
  if (has('stop_reason', 'num_tool_calls') && SLIME_TAIL.test(tailOfName(name, environment) ?? '')) return 'slime/miles';
  if (isSubagent(start) || (has('model', 'agent') && name?.startsWith(`${String(metadata.agent)}_`))) return 'firehorse';
  const recorded = types.size > 0 && [...types].every((type) => type === 'tool_call' || type === 'tool_result');
  return has('session_id') && recorded ? 'palestra' : 'generic';
}

export function isSubagent(start: JsonObject): boolean {
  const metadata = asObject(own(start, 'metadata'));
  return asText(own(metadata, 'parent_rollout')) !== null || SUBAGENT.test(asText(own(start, 'rolloutName')) ?? '');
}
