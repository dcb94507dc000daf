import { isFailed, type RolloutFigures } from '@palestra/metrics';
import { RECENT_STEPS, type RecentStep } from './run-recent.sql.ts';

/** How a run does at its newest steps, for a row of a list. Shares and means are weighted by what they count, so they are those of all these steps together. */
export interface RecentFigures {
  /** Newest steps that went in, at most 10; 0 where none is known. */
  steps: number;
  rollouts: number;
  reward: number | null;
  /** Mean reward of these steps less that of as many steps before them. */
  reward_delta: number | null;
  /** The largest power of two that some group has. */
  pass_k: number | null;
  pass: number | null;
  zero_variance: number | null;
  /** Share of rollouts that the environment or the infrastructure broke off. */
  broken_off: number | null;
  /** Mean tokens of a rollout, of the model and of tools. */
  tokens: number | null;
}

/** `read`: newest first. Where no step is known, the figures are of everything together, as on the Overview; null without any rollout. */
export function recentFigures(read: readonly RecentStep[]): RecentFigures | null {
  if (read.length === 0) return null;
  const known = read.filter(({ step }) => step >= 0);
  const steps = known.length > 0 ? known : read;
  const recent = steps.slice(0, RECENT_STEPS);
  const before = steps.slice(RECENT_STEPS, RECENT_STEPS + recent.length);
  const counted = recent.flatMap(({ figures }) => Object.entries(figures ?? {}).filter(([, figure]) => figure && figure[1] > 0));
  const ks = counted.flatMap(([key]) => (/^pass@\d+$/.test(key) ? [Number(key.slice('pass@'.length))] : []));
  const k = ks.length === 0 ? null : Math.max(...ks);
  const [reward, earlier] = [meanReward(recent), meanReward(before)];
  const rollouts = sum(recent, (step) => step.rollouts);
  const [output, tool] = [weighted(recent, 'tokens_out'), weighted(recent, 'tokens_tool')];
  return {
    steps: known.length > 0 ? recent.length : 0,
    rollouts,
    reward,
    reward_delta: reward === null || earlier === null || before.length < recent.length ? null : reward - earlier,
    pass_k: k,
    pass: k === null ? null : weighted(recent, `pass@${k}`),
    zero_variance: weighted(recent, 'zero_variance'),
    broken_off: rollouts === 0 ? null : sum(recent, ({ stops }) => brokenOff(stops)) / rollouts,
    tokens: output === null && tool === null ? null : (output ?? 0) + (tool ?? 0),
  };
}

const sum = (steps: readonly RecentStep[], of: (step: RecentStep) => number) => steps.reduce((total, step) => total + of(step), 0);

function meanReward(steps: readonly RecentStep[]): number | null {
  const scored = sum(steps, (step) => step.scored);
  return scored === 0 ? null : sum(steps, (step) => step.reward_sum) / scored;
}

/** A figure of several steps, weighted by its denominators. */
function weighted(steps: readonly RecentStep[], key: string): number | null {
  const figures = steps.flatMap(({ figures: made }) => {
    const figure = made?.[key];
    return figure && figure[0] !== null && figure[1] > 0 ? [figure] : [];
  });
  const weight = figures.reduce((total, [, denominator]) => total + denominator, 0);
  return weight === 0 ? null : figures.reduce((total, [value, denominator]) => total + value! * denominator, 0) / weight;
}

const brokenOff = (stops: Readonly<Record<string, number>>): number =>
  Object.entries(stops).reduce(
    (total, [stop, count]) => total + (isFailed({ failure: null, stop: stop as RolloutFigures['stop'] }) ? count : 0),
    0,
  );
