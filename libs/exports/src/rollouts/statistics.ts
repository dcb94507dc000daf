import { isEffective, type NarrowRollout } from './exported-rollout.ts';

/** Limit of distinct names of each kind. The rest is counted together. */
const MAX_NAMES = 1_000;
const OTHERS = '(others)';

export interface ExportFigures {
  rollouts: number;
  scored: number;
  /** Scored and not ended by an error. */
  effective: number;
  /** Over the scored rollouts: running mean and sum of squared distances from it (Welford). */
  reward: { mean: number; squares: number; min: number | null; max: number | null };
  /** Rollouts by `owner/name@version`. */
  environments: Record<string, number>;
  runs: Record<string, number>;
  normalisers: Record<string, number>;
  phases: Record<string, number>;
  steps: { min: number | null; max: number | null };
  /** Rollouts by the provenance of step, group and reward. */
  provenance: Record<'step' | 'group' | 'reward', Record<string, number>>;
}

export function noFigures(): ExportFigures {
  return {
    rollouts: 0,
    scored: 0,
    effective: 0,
    reward: { mean: 0, squares: 0, min: null, max: null },
    environments: {},
    runs: {},
    normalisers: {},
    phases: {},
    steps: { min: null, max: null },
    provenance: { step: {}, group: {}, reward: {} },
  };
}

/** Counts a rollout. The figures are plain JSON, so that a restarted export continues them. */
export function addFigures(figures: ExportFigures, rollout: NarrowRollout): void {
  figures.rollouts += 1;
  if (isEffective(rollout)) figures.effective += 1;
  if (rollout.reward !== null) addReward(figures, rollout.reward);
  const { environment, environment_version: version } = rollout;
  count(figures.environments, environment === null ? '(not said)' : `${environment}${version === null ? '' : `@${version}`}`);
  count(figures.runs, rollout.run);
  count(figures.normalisers, String(rollout.normaliser_version));
  count(figures.phases, rollout.phase);
  if (rollout.step !== null) widen(figures.steps, rollout.step);
  count(figures.provenance.step, rollout.step_prov);
  count(figures.provenance.group, rollout.group_prov);
  count(figures.provenance.reward, rollout.reward_prov);
}

/** Standard deviation (ddof 1) of the rewards; null for fewer than two. */
export function rewardStd({ scored, reward }: ExportFigures): number | null {
  return scored < 2 ? null : Math.sqrt(reward.squares / (scored - 1));
}

function addReward(figures: ExportFigures, reward: number): void {
  figures.scored += 1;
  const distance = reward - figures.reward.mean;
  figures.reward.mean += distance / figures.scored;
  figures.reward.squares += distance * (reward - figures.reward.mean);
  widen(figures.reward, reward);
}

function widen(range: { min: number | null; max: number | null }, value: number): void {
  range.min = range.min === null ? value : Math.min(range.min, value);
  range.max = range.max === null ? value : Math.max(range.max, value);
}

function count(counts: Record<string, number>, name: string): void {
  const key = Object.hasOwn(counts, name) || Object.keys(counts).length < MAX_NAMES ? name : OTHERS;
  // A name may be `constructor` or `__proto__`.
  const value = (Object.hasOwn(counts, key) ? counts[key]! : 0) + 1;
  Object.defineProperty(counts, key, { value, enumerable: true, writable: true, configurable: true });
}
