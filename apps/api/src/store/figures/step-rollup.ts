import {
  computeLens,
  countOf,
  type Figure,
  groupStats,
  histogram,
  isFailed,
  isFigure,
  listMetrics,
  metric,
  type MetricAnswer,
  type MetricContext,
  type RolloutColumns,
  select,
  type SuccessRule,
  takeRollouts,
} from '@palestra/metrics';
import type { Lens } from '@palestra/protocol';
import { failureOfStop, ROLLOUT_FLAGS } from '@palestra/rollouts';
import { windowWidth } from './arrival-windows.ts';
import type { StepKey } from './dirty-steps.sql.ts';
import { type StepColumns, weakerProvenance } from './step-columns.ts';
import type { StepGroup, StepRollup, StepSums, StepWindows } from './step-rollup.sql.ts';

/** A figure as it is stored: value, denominator, of how many, note. `null`: the upload does not contain it. */
export type StoredFigure = [value: number | null, denominator: number, of: number, note?: string] | null;

/** The JSON part of a rollup. */
/** How many groups have the same number of rollouts, of scored rollouts and of successes. */
export type GroupClass = [n: number, scored: number, successes: number, groups: number];

export interface StepFigures {
  canonical: Record<string, StoredFigure>;
  histogram: { low: number; high: number; counts: number[] };
  /** How many scored rollouts (with partial sums), and effective ones, have each reward, ascending; null above fifty different rewards. */
  rewards?: [reward: number, scored: number, effective: number][] | null;
  stops: Record<string, number>;
  /** null when environments of the step have different rules. */
  success: SuccessRule | null;
  groups: number;
  /** Groups by their rollouts, scored and successful ones; missing until a step of an earlier version is computed again. */
  group_classes?: GroupClass[];
  incomplete_groups: number;
  calls: number;
  call_errors: number;
  gaps: number;
  mismatches: number;
  verified?: number;
  /** Other lenses and denominators (`verl/effective`, `canonical/all`, `skyrl@2/effective`), computed at the first request for them. */
  lenses?: Record<string, Record<string, StoredFigure>>;
  /** Histograms of turns, tokens and scored rewards, computed at the first request for them. */
  histograms?: Record<string, StepFigures['histogram']>;
}

type RuleOf = (envId: number) => SuccessRule;

/** Above this number of different rewards a rollup keeps only their histogram. */
const MAX_COUNTED_REWARDS = 50;
/** A bootstrap takes 1000 draws: for the page of one step, not for every step of a run. */
const BOOTSTRAPPED = /^pass.*(_ci_|bootstrap)/;
const CANONICAL = listMetrics('canonical').filter(({ key }) => !BOOTSTRAPPED.test(key));

/** The rollups of a step, for all environments together (env_id 0) and for each, and its groups. */
export function rollUpStep(step: StepKey, columns: StepColumns, ruleOf: RuleOf): { rollups: StepRollup[]; groups: StepGroup[] } {
  if (countOf(columns) === 0) return { rollups: [], groups: [] };
  const context = contextOf(columns, ruleOf);
  const width = step.step < 0 ? widthOf(columns) : null;
  const rollUp = (env_id: number, part: StepColumns): StepRollup => ({
    ...step,
    env_id,
    ...summarise(part, context),
    windows: width === null ? null : rollUpWindows(part, width, context),
  });
  const environments = byValue(columns, columns.envId);
  const rollups = environments.map(([envId, part]) => rollUp(envId, part));
  const whole = rollups.length === 1 ? { ...rollups[0]!, env_id: 0 } : rollUp(0, columns);
  return { rollups: [whole, ...rollups], groups: environments.flatMap(([envId, part]) => groupsOf(envId, part, context)) };
}

/** All figures of a lens and denominator, and those of `keys`. */
export function lensFigures(
  { lens, keys, ...given }: { lens: Lens; keys: readonly string[] } & Pick<MetricContext, 'denominator' | 'phase' | 'environments'>,
  columns: StepColumns,
  ruleOf: RuleOf,
): Record<string, StoredFigure> {
  const context = { ...contextOf(columns, ruleOf), ...given };
  const figures = lens === 'canonical' ? canonicalFigures(columns, context) : storedFigures(computeLens(lens, columns, context));
  for (const key of keys) figures[key] ??= stored(metric(lens, key)!.compute(columns, context));
  return figures;
}

type StepContext = MetricContext & { success: ReadonlyMap<string, SuccessRule> };

const contextOf = ({ envId }: StepColumns, ruleOf: RuleOf): StepContext => ({
  success: new Map([...new Set(envId)].map((id) => [String(id), ruleOf(id)])),
});

/** The rollouts of each value of a column, in order of first appearance. */
function byValue(columns: StepColumns, column: readonly number[]): [value: number, part: StepColumns][] {
  const places = new Map<number, number[]>();
  column.forEach((value, at) => {
    const known = places.get(value);
    if (known === undefined) places.set(value, [at]);
    else known.push(at);
  });
  return [...places].map(([value, at]) => [value, at.length === column.length ? columns : takeRollouts(columns, at)]);
}

const widthOf = ({ receivedAt }: StepColumns): number =>
  windowWidth({
    count: receivedAt.length,
    first: receivedAt.reduce((least, at) => Math.min(least, at)),
    last: receivedAt.reduce((most, at) => Math.max(most, at)),
  });

/** Rollouts without a step, by the time of their arrival. */
function rollUpWindows(columns: StepColumns, width: number, context: StepContext): StepWindows {
  const starts = columns.receivedAt.map((at) => Math.floor(at / width) * width);
  const windows = byValue(columns, starts).map(([from, part]) => ({
    from,
    to: from + width,
    first_seq: String(part.seq[0]),
    last_seq: String(part.seq.at(-1)),
    ...summarise(part, context),
  }));
  return { width_ms: width, windows: windows.toSorted((one, other) => one.from - other.from) };
}

type Summary = Omit<StepSums, keyof StepKey | 'env_id'>;

function summarise(columns: StepColumns, context: StepContext): Summary {
  const rewards = select(columns).rewards.toSorted((a, b) => a - b);
  const rules = [...context.success.values()];
  const figures: StepFigures = {
    canonical: canonicalFigures(columns, context),
    histogram: histogram(rewards),
    rewards: rewardCounts(columns),
    stops: stopCounts(columns),
    success: rules.length === 1 ? rules[0]! : null,
    ...groupCounts(columns, context),
    calls: sum(columns.calls),
    call_errors: sum(columns.callErrors),
    gaps: sum(columns.gaps),
    mismatches: columns.flags.filter((flags) => (flags & ROLLOUT_FLAGS.reward_mismatch) !== 0).length,
  };
  return {
    rollouts: countOf(columns),
    scored: rewards.length,
    errors: columns.seq.filter((_, at) => isErrorAt(columns, at)).length,
    finished: columns.finished.filter(Boolean).length,
    messages: sum(columns.messages),
    // Ascending, so that the order of arrival does not change the last bit.
    reward_sum: sum(rewards),
    provenance: columns.provenance.reduce(weakerProvenance),
    figures,
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function canonicalFigures(columns: RolloutColumns, context: MetricContext): Record<string, StoredFigure> {
  const keys = CANONICAL.flatMap((definition) => definition.keysFor(columns, context));
  return storedFigures(keys.map((key) => [key, metric('canonical', key)!.compute(columns, context)]));
}

const storedFigures = (answers: Iterable<readonly [string, MetricAnswer]>): Record<string, StoredFigure> =>
  Object.fromEntries([...answers].map(([key, answer]) => [key, stored(answer)]));
/** A stored figure by name; null when the upload does not contain it. */
export function readFigure(figure: StoredFigure | undefined): Figure | null {
  if (!figure) return null;
  const [value, denominator, of, note] = figure;
  return note === undefined ? { value, denominator, of } : { value, denominator, of, note };
}

const stored = (answer: MetricAnswer): StoredFigure => (isFigure(answer) ? storedFigure(answer) : null);
const storedFigure = ({ value, denominator, of, note }: Figure): StoredFigure =>
  note ? [value, denominator, of, note] : [value, denominator, of];

function rewardCounts({ reward, failure, stop }: StepColumns): StepFigures['rewards'] {
  const counts = new Map<number, [reward: number, scored: number, effective: number]>();
  for (let at = 0; at < reward.length; at += 1) {
    const value = reward[at] ?? null;
    if (value === null) continue;
    const count = counts.get(value) ?? [value, 0, 0];
    if (count[1] === 0 && counts.size === MAX_COUNTED_REWARDS) return null;
    count[1] += 1;
    if (!isFailed({ failure: failure[at] ?? null, stop: stop[at] ?? null })) count[2] += 1;
    counts.set(value, count);
  }
  return [...counts.values()].toSorted(([one], [other]) => one - other);
}

function stopCounts({ stop }: StepColumns): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const reason of stop) counts[reason ?? 'unknown'] = (counts[reason ?? 'unknown'] ?? 0) + 1;
  return counts;
}

/** A group with fewer rollouts than its uploads declare is incomplete. */
function groupCounts(columns: StepColumns, context: StepContext): Pick<StepFigures, 'groups' | 'group_classes' | 'incomplete_groups'> {
  const groups = [...groupMembers(columns).values()];
  const classes = new Map<string, GroupClass>();
  for (const { n, scored, c } of groupStats(columns, context).values()) {
    const known = classes.get(`${n} ${scored} ${c}`) ?? [n, scored, c, 0];
    known[3] += 1;
    classes.set(`${n} ${scored} ${c}`, known);
  }
  return {
    groups: groups.length,
    group_classes: [...classes.values()].toSorted((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2]),
    incomplete_groups: groups.filter(({ n, expected }) => expected !== null && n < expected).length,
  };
}

/** It failed without fault of the policy, as its session or its stop reason says. */
const isErrorAt = ({ failure, stop }: StepColumns, at: number): boolean => failure[at] != null || failureOfStop(stop[at] ?? null) !== null;

interface GroupMembers {
  n: number;
  /** The largest declared size. */
  expected: number | null;
  errors: number;
  /** The least task id. */
  task: number | null;
}

function groupMembers(columns: StepColumns): Map<string, GroupMembers> {
  const { group, groupSize, taskId } = columns;
  const groups = new Map<string, GroupMembers>();
  for (let at = 0; at < group.length; at += 1) {
    const key = group[at] ?? null;
    if (key === null) continue;
    const members = groups.get(key) ?? { n: 0, expected: null, errors: 0, task: null };
    const [size, task] = [groupSize[at] ?? null, taskId[at] ?? null];
    members.n += 1;
    if (size !== null) members.expected = Math.max(size, members.expected ?? size);
    if (task !== null) members.task = Math.min(task, members.task ?? task);
    if (isErrorAt(columns, at)) members.errors += 1;
    groups.set(key, members);
  }
  return groups;
}

function groupsOf(envId: number, columns: StepColumns, context: StepContext): StepGroup[] {
  const members = groupMembers(columns);
  return [...groupStats(columns, context)].map(([key, { n, scored, c, sum: total, sumsq, min, max }]) => {
    const { expected, errors, task } = members.get(key)!;
    return {
      group_key: key,
      env_id: envId,
      task_id: task,
      n,
      n_expected: expected,
      scored,
      errors,
      successes: c,
      sum: total,
      sum_squares: sumsq,
      min,
      max,
    };
  });
}
