import type { Interval } from '../intervals.ts';
import { bootstrapOfRuns, bootstrapOfTasks } from './bootstrap.ts';
import { detectable, samplesFactor, tasksNeeded } from './power.ts';
import { type Estimate, pairedEstimate, type Sample, sampleOf, welchEstimate } from './tests.ts';

/** One metric of the rollouts of one task in one run. */
export interface Cell extends Sample {
  environment: string | null;
}
/** One metric of a run: by task, and over all its rollouts. */
export interface RunCells {
  tasks: ReadonlyMap<string, Cell>;
  /** Null for a metric without a variance over rollouts. */
  rollouts: Sample | null;
}

export interface Power {
  /** Smallest true difference that this comparison detects with a probability of 80 %. */
  detectable: number;
  /** The interval excludes zero. */
  resolved: boolean;
  /** Units (tasks, or rollouts for `rollouts`) per run that detect the present difference in 80 % of all cases; null: no useful number. */
  needed: number | null;
  /** Samples per task and run that detect it with the present tasks; null: no number does, or unknown. */
  samplesNeeded: number | null;
}

export interface Comparison extends Estimate {
  /**
   * `paired`: the difference of each common task. `unpaired`: Welch over the task means of each run. `rollouts`: Welch over rollouts, where
   * there are not two tasks.
   */
  method: 'paired' | 'unpaired' | 'rollouts';
  /** What the difference is made of: common tasks if paired. */
  first: { mean: number; tasks: number; samples: number };
  other: { mean: number; tasks: number; samples: number };
  /** Welch's interval over the task means of the same tasks, as if they had nothing in common: what pairing gains. Null below two tasks. */
  unpaired: Interval | null;
  power: Power | null;
}

interface Difference extends Omit<Comparison, 'power'> {
  power: () => Power | null;
}

/** From this number of common tasks on, runs are paired whatever else they have. */
const ENOUGH_COMMON = 20;

/** Runs are paired if they share at least two tasks, and half of the tasks of the smaller run or twenty. */
const canPair = (common: number, first: number, other: number): boolean =>
  common >= 2 && (common >= ENOUGH_COMMON || 2 * common >= Math.min(first, other));

export interface PairedTask {
  task: string;
  environment: string | null;
  first: Cell;
  other: Cell;
}

export function commonTasks(first: RunCells['tasks'], other: RunCells['tasks']): PairedTask[] {
  return [...first].flatMap(([task, cell]) => {
    const same = other.get(task);
    return same ? [{ task, environment: cell.environment, first: cell, other: same }] : [];
  });
}

/** The difference `other − first` of one metric; null if a run has no figure. Its power takes some 20 ms. */
export function compare(first: RunCells, other: RunCells): Comparison | null {
  const found = estimateDifference(first, other);
  return found && { ...found, power: found.power() };
}

/** As `compare`, with the power still to be computed. */
export function estimateDifference(first: RunCells, other: RunCells): Difference | null {
  const common = commonTasks(first.tasks, other.tasks);
  if (canPair(common.length, first.tasks.size, other.tasks.size)) return comparePaired(common);
  const [a, b] = [[...first.tasks.values()], [...other.tasks.values()]];
  if (a.length > 1 && b.length > 1) return compareSamples('unpaired', sideOf(a), sideOf(b), meansOf(a), meansOf(b));
  if (!first.rollouts || !other.rollouts)
    return a.length > 0 && b.length > 0 ? compareSamples('unpaired', sideOf(a), sideOf(b), meansOf(a), meansOf(b)) : null;
  const side = ({ mean, count }: Sample, tasks: number) => ({ mean, tasks, samples: count });
  return compareSamples('rollouts', side(first.rollouts, a.length), side(other.rollouts, b.length), first.rollouts, other.rollouts);
}

const meansOf = (cells: readonly Cell[]): Sample => sampleOf(cells.map(({ mean }) => mean));
const sideOf = (cells: readonly Cell[]): Comparison['first'] => ({
  mean: meansOf(cells).mean,
  tasks: cells.length,
  samples: cells.reduce((sum, { count }) => sum + count, 0),
});
const intervalOf = (estimate: Estimate | null): Interval | null =>
  estimate === null || estimate.low === null || estimate.high === null ? null : { low: estimate.low, high: estimate.high };

function comparePaired(common: readonly PairedTask[]): Difference {
  const [a, b] = [common.map(({ first }) => first), common.map(({ other }) => other)];
  const differences = common.map((pair) => pair.other.mean - pair.first.mean);
  const estimate = pairedEstimate(differences)!;
  const [first, other] = [sideOf(a), sideOf(b)];
  const { variance } = sampleOf(differences);
  return {
    method: 'paired',
    first,
    other,
    ...estimate,
    unpaired: intervalOf(welchEstimate(meansOf(a), meansOf(b))),
    power: () => (variance === null ? null : pairedPower(estimate, variance, common, (first.samples + other.samples) / 2 / common.length)),
  };
}

function pairedPower(estimate: Estimate, variance: number, common: readonly PairedTask[], samples: number): Power {
  const tasks = common.length;
  const { difference } = estimate;
  const within = withinVariance(common);
  const factor = within === null || variance === 0 ? null : samplesFactor(difference, { tasks, variance, within });
  return {
    detectable: variance === 0 ? 0 : detectable(tasks - 1) * estimate.error!,
    resolved: isResolved(estimate),
    needed: variance === 0 ? null : tasksNeeded(difference, Math.sqrt(variance)),
    samplesNeeded: factor === null ? null : Math.max(1, Math.ceil(samples * factor)),
  };
}

/** The part of the variance of differences that comes from the samples of a task: the mean of `s²/n` of both runs. Null if any is unknown. */
function withinVariance(common: readonly PairedTask[]): number | null {
  let sum = 0;
  for (const { first, other } of common) {
    if (first.variance === null || other.variance === null) return null;
    sum += first.variance / first.count + other.variance / other.count;
  }
  return sum / common.length;
}

const isResolved = ({ low, high }: Estimate): boolean => low !== null && high !== null && (low > 0 || high < 0);

function compareSamples(
  method: Comparison['method'],
  first: Comparison['first'],
  other: Comparison['first'],
  a: Sample,
  b: Sample,
): Difference | null {
  const estimate = welchEstimate(a, b);
  if (!estimate) return null;
  return {
    method,
    first,
    other,
    ...estimate,
    unpaired: intervalOf(estimate),
    power: () => independentPower(estimate, Math.min(a.count, b.count)),
  };
}

/** For independent samples: the squared standard error falls with the number of units of both runs. */
function independentPower(estimate: Estimate, units: number): Power | null {
  const { error, df, difference } = estimate;
  if (error === null || df === null) return null;
  const smallest = detectable(df) * error;
  const needed = Math.ceil(units * (smallest / difference) ** 2);
  return { detectable: smallest, resolved: isResolved(estimate), needed: error > 0 && needed <= 1e9 ? needed : null, samplesNeeded: null };
}

/** The bootstrap interval of a comparison, clustered by task; null for fewer than two tasks. Yields between slices of work. */
export function* bootstrapOf(first: RunCells, other: RunCells, method: Comparison['method']): Generator<void, Interval | null> {
  if (method === 'paired')
    return yield* bootstrapOfTasks(commonTasks(first.tasks, other.tasks).map((pair) => pair.other.mean - pair.first.mean));
  if (method === 'rollouts') return null;
  const means = (cells: RunCells) => [...cells.tasks.values()].map(({ mean }) => mean);
  return yield* bootstrapOfRuns(means(first), means(other));
}
