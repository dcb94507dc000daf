import { MESSAGE_FLAGS } from '../events/message-flags.ts';
import type { MessageSkeleton } from '../events/message-skeleton.ts';
import type { Turn } from '../events/turns.ts';
import { rewardInRange } from '../json/fields.ts';

/** Drops a reward that is out of range. */
export function withRewardInRange(message: MessageSkeleton): MessageSkeleton {
  if (message.reward === null) return message;
  const reward = rewardInRange(message.reward);
  if (reward === message.reward) return message;
  const nonfinite = reward === null ? MESSAGE_FLAGS.nonfinite | MESSAGE_FLAGS.nonfiniteReward : 0;
  return { ...message, reward, flags: message.flags | nonfinite };
}

/** The rewards of the messages of a rollout; a stamped turn counts once. null without any reward, or if one is not finite. */
export interface StepRewards {
  /** Steps with a reward. */
  count: number;
  sum: number | null;
  /** Sum of max(r, 0). */
  positive: number | null;
  max: number | null;
  min: number | null;
  /** Reward of the last step with one. */
  last: number | null;
  /** Sum over the last turn in which the policy spoke, without messages after the end; 0 if only earlier turns have rewards. */
  lastTurn: number | null;
  stamped: boolean;
  /** A reward was NaN or infinite, so there is no total. */
  nonfinite: boolean;
}

export function stepRewards(turns: readonly Turn[]): StepRewards {
  const rewards: number[] = [];
  let lastTurn = 0;
  let ended = false;
  let stamped = false;
  let nonfinite = false;
  for (const turn of turns) {
    const read = turnRewards(turn);
    stamped ||= read.stamped;
    nonfinite ||= [...turn.policy, ...turn.answers].some(({ flags }) => (flags & MESSAGE_FLAGS.nonfiniteReward) !== 0);
    for (const reward of read.rewards) rewards.push(reward);
    if (turn.policy.length > 0 && !ended) lastTurn = total(read.rewards);
    ended ||= turn.answers.some(({ isFinished }) => isFinished);
  }
  const sum = total(rewards);
  const positive = total(rewards.map((reward) => Math.max(reward, 0)));
  // Two rewards of 1e308 have no finite sum.
  nonfinite ||= !Number.isFinite(sum) || !Number.isFinite(positive) || !Number.isFinite(lastTurn);
  if (rewards.length === 0 || nonfinite) {
    return { count: rewards.length, sum: null, positive: null, max: null, min: null, last: null, lastTurn: null, stamped, nonfinite };
  }
  return {
    count: rewards.length,
    sum,
    positive,
    max: rewards.reduce((a, b) => Math.max(a, b)),
    min: rewards.reduce((a, b) => Math.min(a, b)),
    last: rewards.at(-1)!,
    lastTurn,
    stamped,
    nonfinite,
  };
}

/** The rewards of one turn. If the turn is stamped (docs/reference/metrics.md#stamped-rewards), each distinct reward counts once. */
function turnRewards({ policy, answers }: Turn): { rewards: number[]; stamped: boolean } {
  const results = answers.filter(({ type }) => type === 'tool_result');
  const others = [...policy, ...answers.filter(({ type }) => type !== 'tool_result')];
  const rewards = [...policy, ...answers].flatMap(rewardOf);
  const ofResults = new Set(results.flatMap(rewardOf));
  const ofOthers = others.flatMap(rewardOf);
  const stamped =
    results.filter(({ isFinished }) => isFinished).length > 1 ||
    ofOthers.some((reward) => ofResults.has(reward)) ||
    (ofResults.size === 0 && new Set(ofOthers).size < ofOthers.length);
  return { rewards: stamped ? [...new Set(rewards)] : rewards, stamped };
}

const rewardOf = ({ reward }: MessageSkeleton): number[] => (reward === null ? [] : [reward]);
const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** Canonical total, and whether the reported one differs (docs/reference/metrics.md#canonical-reward). */
export interface CanonicalReward {
  /** null means unscored and is never 0. */
  reward: number | null;
  rule: 'messages.sum' | 'reported' | null;
  mismatch: boolean;
}

const TOLERANCE = 1e-6;

/** Sum of the message rewards. Without any, the reported total unless it is 0, because SkyRL reports 0.0 for an episode without rewards. */
export function canonicalReward(steps: StepRewards, reported: number | null): CanonicalReward {
  if (steps.nonfinite) return { reward: null, rule: null, mismatch: false };
  if (steps.sum !== null) {
    return { reward: steps.sum, rule: 'messages.sum', mismatch: reported !== null && !sameReward(steps.sum, reported) };
  }
  if (reported === null || reported === 0) return { reward: null, rule: null, mismatch: false };
  return { reward: reported, rule: 'reported', mismatch: false };
}

export const sameReward = (a: number, b: number): boolean => Math.abs(a - b) <= TOLERANCE;
