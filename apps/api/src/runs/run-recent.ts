import { isFailed, mostCommonSize, passAtKOfGroup, type RolloutFigures } from '@palestra/metrics';
import { type GroupClass, readFigure } from '../store/figures/step-rollup.ts';
import { RECENT_STEPS, type RecentStep } from './run-recent.sql.ts';

/** Figures of a run's newest steps, for a row of a list. Shares and means are weighted by their denominators, so they are exact for all these steps together. */
export interface RecentFigures {
  /** How many newest steps these figures cover, at most 10; 0 where no step is known. */
  steps: number;
  rollouts: number;
  /** Rollouts with a reward. */
  scored: number;
  reward: number | null;
  /** Mean reward of these steps minus that of as many steps before them. */
  reward_delta: number | null;
  /** The most common number of rollouts in a group. */
  pass_k: number | null;
  pass: number | null;
  /** Groups with `pass_k` scored rollouts, and all. */
  pass_groups: number;
  groups: number;
  zero_variance: number | null;
  /** Share of rollouts that stopped for a reason other than the policy. */
  broken_off: number | null;
  /** Mean tokens of a rollout, of the model and of tools. */
  tokens: number | null;
}

/** `newest`: newest step first. Where no step is known, the figures are of all rollouts together; null without rollouts. */
export function recentFigures(newest: readonly RecentStep[]): RecentFigures | null {
  if (newest.length === 0) return null;
  const known = newest.filter(({ step }) => step >= 0);
  const steps = known.length > 0 ? known : newest;
  const recent = steps.slice(0, RECENT_STEPS);
  const before = steps.slice(RECENT_STEPS, RECENT_STEPS + recent.length);
  const [reward, earlier] = [meanReward(recent), meanReward(before)];
  const rollouts = sum(recent, (step) => step.rollouts);
  const [output, tool] = [weighted(recent, 'tokens_out'), weighted(recent, 'tokens_tool')];
  return {
    steps: known.length > 0 ? recent.length : 0,
    rollouts,
    scored: sum(recent, (step) => step.scored),
    reward,
    reward_delta: reward === null || earlier === null || before.length < recent.length ? null : reward - earlier,
    ...passOf(recent.flatMap((step) => step.group_classes ?? [])),
    zero_variance: weighted(recent, 'zero_variance'),
    broken_off: rollouts === 0 ? null : sum(recent, ({ stops }) => countFailed(stops)) / rollouts,
    tokens: output === null && tool === null ? null : (output ?? 0) + (tool ?? 0),
  };
}

const sum = (steps: readonly RecentStep[], of: (step: RecentStep) => number) => steps.reduce((total, step) => total + of(step), 0);

function meanReward(steps: readonly RecentStep[]): number | null {
  const scored = sum(steps, (step) => step.scored);
  return scored === 0 ? null : sum(steps, (step) => step.reward_sum) / scored;
}

/** pass@k of these groups, for k = their most common size. */
function passOf(classes: readonly GroupClass[]): Pick<RecentFigures, 'pass_k' | 'pass' | 'pass_groups' | 'groups'> {
  const count = (some: readonly GroupClass[]) => some.reduce((total, [, , , groups]) => total + groups, 0);
  const k = mostCommonSize(classes.map(([n, , , groups]) => [n, groups]));
  const eligible = classes.filter(([, scored]) => scored >= k);
  const [pass_groups, groups] = [count(eligible), count(classes)];
  const total = eligible.reduce((sums, [, scored, successes, of]) => sums + of * passAtKOfGroup(scored, successes, k)!, 0);
  return { pass_k: k === 0 ? null : k, pass: pass_groups === 0 || k === 0 ? null : total / pass_groups, pass_groups, groups };
}

/** A figure of several steps, weighted by its denominators. */
function weighted(steps: readonly RecentStep[], key: string): number | null {
  const figures = steps
    .flatMap((step) => readFigure(step.figures?.[key]) ?? [])
    .filter(({ value, denominator }) => value !== null && denominator > 0);
  const weight = figures.reduce((total, { denominator }) => total + denominator, 0);
  return weight === 0 ? null : figures.reduce((total, { value, denominator }) => total + value! * denominator, 0) / weight;
}

const countFailed = (stops: Readonly<Record<string, number>>): number =>
  Object.entries(stops).reduce(
    (total, [stop, count]) => total + (isFailed({ failure: null, stop: stop as RolloutFigures['stop'] }) ? count : 0),
    0,
  );
