import type { JsonObject, MessageType, RolloutSource } from '@palestra/protocol';
import { asObject, asText, memberOf } from '../json/fields.ts';

/** Prefixes of `run_info.framework`, lower case. */
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

/**
 * Names of the integrations (docs/reference/metrics.md#integrations). `prefixes`: possible starts of a name of this environment and
 * split.
 */
const TINKER_TAIL = /^(\d{1,10})-step(\d{1,10})-r(\d{1,10})$/;
export const SLIME_TAIL = /^([0-9a-f]{6,64})-[0-9a-f]{8}$/;
const SUBAGENT = /^trial_.+_subagent_/;

/** The rest of a name after `{environment}-` or `{environment}-{split}-`. The environment may have `-` for `/`. */
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

/** The first that applies: the reported framework, the keys of the metadata with the pattern of the name, `generic`. */
export function sourceOf({ start, types }: SourceFacts): RolloutSource {
  const framework = asText(memberOf(asObject(memberOf(start, 'run_info')), 'framework'))?.toLowerCase();
  const known = framework === undefined ? undefined : FRAMEWORKS.find(([begin]) => framework.startsWith(begin));
  if (known !== undefined) return known[1];
  const metadata = asObject(memberOf(start, 'metadata'));
  const has = (...keys: string[]) => keys.every((key) => Object.hasOwn(metadata, key));
  const name = asText(memberOf(start, 'rolloutName'));
  const environment = asText(memberOf(start, 'environment'));
  const tail = tailOfName(name, environment, asText(memberOf(start, 'split')));
  if (has('step', 'rollout_idx', 'stop') && tail !== null && TINKER_TAIL.test(tail)) return 'tinker';
  if (has('stop_reason', 'total_reward', 'num_turns') && tail !== null && /^\d{1,10}$/.test(tail)) return 'skyrl';
  // `reward_sum` is absent without rewards.
  if (has('stop_reason', 'num_tool_calls') && SLIME_TAIL.test(tailOfName(name, environment) ?? '')) return 'slime/miles';
  if (isSubagent(start) || (has('model', 'agent') && name?.startsWith(`${String(metadata.agent)}_`))) return 'firehorse';
  const recorded = types.size > 0 && [...types].every((type) => type === 'tool_call' || type === 'tool_result');
  return has('session_id') && recorded ? 'palestra' : 'generic';
}

export function isSubagent(start: JsonObject): boolean {
  const metadata = asObject(memberOf(start, 'metadata'));
  return asText(memberOf(metadata, 'parent_rollout')) !== null || SUBAGENT.test(asText(memberOf(start, 'rolloutName')) ?? '');
}
