import { type FieldProvenance, UNKNOWN } from '../provenance/provenance.ts';
import { canonicalReward, type StepRewards } from './reward.ts';

export interface FilledReward {
  /** Of the steps that ran, also of a rollout that was interrupted. */
  total: number | null;
  /** `total` unless the rollout was interrupted. */
  reward: number | null;
  reported: number | null;
  mismatch: boolean;
  provenance: FieldProvenance;
}

/** A computed total also counts as `reported` if the upload reports the same. */
export function rewardFilled(
  reported: { value: number | null; provenance: FieldProvenance },
  steps: StepRewards,
  interrupted: boolean,
): FilledReward {
  const { reward: total, rule, mismatch } = canonicalReward(steps, reported.value);
  const filled = { total, reward: interrupted ? null : total, reported: reported.value, mismatch };
  if (interrupted || rule === null) return { ...filled, provenance: UNKNOWN };
  const confirmed = reported.value !== null && !mismatch;
  return { ...filled, provenance: confirmed ? reported.provenance : { value: 'parsed', rule } };
}

export function rewardFields({ total, reward, reported }: FilledReward, steps: StepRewards) {
  return {
    reward,
    partialReward: reward === null ? total : null,
    rewardReported: reported,
    rewardPositive: total === null ? null : (steps.positive ?? Math.max(total, 0)),
    rewardSteps: steps.count,
    rewardSum: steps.sum,
    rewardMax: steps.max,
    rewardMin: steps.min,
    rewardFinal: steps.last,
  };
}
