import { MESSAGE_FLAGS } from '../events/message-flags.ts';
import type { MessageSkeleton } from '../events/message-skeleton.ts';
import type { Turn } from '../events/turns.ts';
import { rewardInRange } from '../json/fields.ts';

/** The message with its reward in range. */
export function withRewardInRange(message: MessageSkeleton): MessageSkeleton {
  if (message.reward === null) return message;
  const reward = rewardInRange(message.reward);
  if (reward === message.reward) return message;
  const nonfinite = reward === null ? MESSAGE_FLAGS.nonfinite | MESSAGE_FLAGS.nonfiniteReward : 0;
  return { ...message, reward, flags: message.flags | nonfinite };
}

/** The rewards of a rollout's messages, a stamped turn counted once. Null without any reward, and where one is not finite. */
export interface StepRewards {
  /** Reward-bearing steps. */
  count: number;
  sum: number | null;
  /** Sum of max(r, 0). */
  positive: number | null;
  max: number | null;
  min: number | null;
  /** Of the last reward-bearing step. */
  last: number | null;
  /**
   * Sum over the last turn in which the policy said something, not counting what it said after the end; 0 when rewards stand only on
   * earlier turns.
   */
  lastTurn: number | null;
  stamped: boolean;
  /** A reward was NaN or infinite: no total can be told. */
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
  // Two rewards of 1e308 have no sum.
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

/**
 * The rewards of one turn. Some recipes stamp a turn's reward and end on every event of it (openreward-wire.md 13.9). A turn is
 * stamped (dashboard.md 14.16) when its events that are no results carry the reward of its results, or several results are finished;
 * also when several events of a turn without results carry one reward. Then each distinct reward counts once. Equal rewards on the
 * results of two parallel calls alone prove nothing and count as they stand.
 */
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

/** Canonical total, and whether the reported one contradicts it (dashboard.md 14.2). */
export interface CanonicalReward {
  /** Null = unscored, which is not 0. */
  reward: number | null;
  rule: 'messages.sum' | 'reported' | null;
  mismatch: boolean;
}

const TOLERANCE = 1e-6;

/**
 * Message rewards summed; without any, the reported total unless it is 0 (SkyRL reports 0.0 when all are null). A total that is
 * not finite is none.
 */
export function canonicalReward(steps: StepRewards, reported: number | null): CanonicalReward {
  if (steps.nonfinite) return { reward: null, rule: null, mismatch: false };
  if (steps.sum !== null) {
    return { reward: steps.sum, rule: 'messages.sum', mismatch: reported !== null && !sameReward(steps.sum, reported) };
  }
  if (reported === null || reported === 0) return { reward: null, rule: null, mismatch: false };
  return { reward: reported, rule: 'reported', mismatch: false };
}

export const sameReward = (a: number, b: number): boolean => Math.abs(a - b) <= TOLERANCE;
