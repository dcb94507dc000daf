import {
  computeLens,
  type Denominator,
  type Figure,
  histogram,
  isFailed,
  isFigure,
  type Lens,
  listMetrics,
  metric,
  type MetricAnswer,
  type MetricDefinition,
  type RolloutFacts,
  scoreOf,
  type SuccessRule,
} from '@palestra/metrics';
import { FAILURES, STOPS, wordOf } from '../codes.ts';
import { byWindow, windowWidth } from './arrival-windows.ts';
import type { GroupRow, RollupTuple, StepKey, StepRollup, StepSums, StepWindows } from './rollup.sql.ts';

/** A figure as it is stored: value, denominator, of how many, note. `null`: the upload cannot give it. */
export type StoredFigure = [value: number | null, denominator: number, of: number, note?: string] | null;

/** What a step's rollup holds beside its columns. */
export interface StepFigures {
  canonical: Record<string, StoredFigure>;
  histogram: { low: number; high: number; counts: number[] };
  /** How many rollouts, and effective ones, have each reward; null when these are too many different ones to count each. */
  rewards?: [reward: number, scored: number, effective: number][] | null;
  stops: Record<string, number>;
  success: { threshold: number; strict: boolean } | null;
  groups: number;
  incomplete_groups: number;
  calls: number;
  call_errors: number;
  gaps: number;
  mismatches: number;
  verified?: number;
  /** Of other lenses and denominators (`skyrl/scored`, `canonical/all`), by key: made when somebody first asks. */
  lenses?: Record<string, Record<string, StoredFigure>>;
  /** Of turns, tokens and effective rewards, likewise. */
  histograms?: Record<string, StepFigures['histogram']>;
}

const ONE: SuccessRule = { threshold: 1, strict: false };
const POSITIVE: SuccessRule = { threshold: 0, strict: true };

/** What success means: as the run's owner pinned it, else by the scale of the environment's rewards (dashboard.md 14.3). */
export function successRule(pinned: number | undefined, unitRewards: boolean | undefined): SuccessRule {
  if (pinned !== undefined) return { threshold: pinned, strict: false };
  return unitRewards === false ? POSITIVE : ONE;
}
/** 1000 draws a figure are for the page of one step, not for every step of a run. */
const BOOTSTRAPPED = /_ci_|bootstrap/;
const CANONICAL = listMetrics('canonical').filter(({ key }) => !key.startsWith('pass') || !BOOTSTRAPPED.test(key));

/** Few names, asked for on every step. */
const canonicalMetrics = new Map<string, MetricDefinition>();
function canonicalMetric(name: string): MetricDefinition {
  const definition = canonicalMetrics.get(name) ?? metric('canonical', name)!;
  canonicalMetrics.set(name, definition);
  return definition;
}

/** Rollups of a step, for all environments together and, where there are several, for each; and its groups. */
export function rollUpStep(
  step: StepKey,
  tuples: readonly RollupTuple[],
  successOf: (envId: number) => SuccessRule,
): { rollups: StepRollup[]; groups: GroupRow[] } {
  if (tuples.length === 0) return { rollups: [], groups: [] };
  // In seq order, so that sums have the same last bit whoever adds them up.
  const sorted = tuples.toSorted(bySeq);
  const byEnvironment = new Map<number, RollupTuple[]>();
  for (const tuple of sorted) {
    const own = byEnvironment.get(tuple[1]);
    if (own) own.push(tuple);
    else byEnvironment.set(tuple[1], [tuple]);
  }
  const rules = new Map([...byEnvironment.keys()].map((envId) => [String(envId), successOf(envId)]));
  // Where the step is not known the moment of arrival stands for it, in the same windows for every environment.
  const width = step.step < 0 ? windowWidth(sorted.map((tuple) => tuple[22])) : null;
  const one = (envId: number, own: readonly RollupTuple[]) => {
    const key = { ...step, env_id: envId };
    return { ...rollUp(key, own, rules), windows: width === null ? null : windowRollups(key, own, rules, width) };
  };
  const parts = [...byEnvironment].map(([envId, own]) => one(envId, own));
  const whole = parts.length === 1 ? { ...parts[0]!, env_id: 0 } : one(0, sorted);
  return {
    rollups: [whole, ...parts],
    groups: [...byEnvironment].flatMap(([envId, own]) => groupRows({ ...step, env_id: envId }, own, rules)),
  };
}

function windowRollups(
  key: StepKey & { env_id: number },
  tuples: readonly RollupTuple[],
  rules: ReadonlyMap<string | null, SuccessRule>,
  width: number,
): StepWindows {
  const windows = byWindow(tuples, width).map(({ tuples: own, ...window }) => {
    const { run_seq: _run, phase: _phase, step: _step, env_id: _env, ...sums } = rollUp(key, own, rules);
    return { ...window, ...sums };
  });
  return { width_ms: width, windows };
}

function rollUp(
  key: StepKey & { env_id: number },
  tuples: readonly RollupTuple[],
  rules: ReadonlyMap<string | null, SuccessRule>,
): StepSums {
  const rows = tuples.map(factsOf);
  const context = { success: rules };
  const stops: Record<string, number> = {};
  for (const { stop } of rows) stops[stop ?? 'unknown'] = (stops[stop ?? 'unknown'] ?? 0) + 1;
  const rewards = rows.map(({ reward }) => reward).filter((reward) => reward !== null);
  const figures: StepFigures = {
    canonical: Object.fromEntries(
      CANONICAL.flatMap((definition) =>
        definition.keysFor(rows, context).map((name) => [name, stored(canonicalMetric(name).compute(rows, context))] as const),
      ),
    ),
    histogram: histogram(rewards),
    rewards: rewardCounts(rows),
    stops,
    success: rules.size === 1 ? [...rules.values()][0]! : null,
    ...groupCounts(tuples),
    calls: sum(tuples, 13),
    call_errors: sum(tuples, 14),
    gaps: sum(tuples, 17),
    mismatches: tuples.filter((tuple) => tuple[18] & 1).length,
  };
  return {
    ...key,
    rollouts: tuples.length,
    scored: rewards.length,
    errors: tuples.filter((tuple) => tuple[10] !== null).length,
    finished: tuples.filter((tuple) => tuple[20]).length,
    messages: sum(tuples, 12),
    reward_sum: rewards.reduce((total, reward) => total + reward, 0),
    provenance: weakest(tuples.map((tuple) => tuple[19])),
    figures,
  };
}

/** Different rewards that a step may have for each to be counted. */
const MAX_COUNTED_REWARDS = 50;

function rewardCounts(rows: readonly RolloutFacts[]): NonNullable<StepFigures['rewards']> | null {
  const counts = new Map<number, [number, number, number]>();
  for (const row of rows) {
    const reward = scoreOf(row);
    if (reward === null) continue;
    const count = counts.get(reward) ?? [reward, 0, 0];
    if (counts.set(reward, count).size > MAX_COUNTED_REWARDS) return null;
    count[1] += 1;
    if (!isFailed(row)) count[2] += 1;
  }
  return [...counts.values()].toSorted(([a], [b]) => a - b);
}

/** Decimal texts of positive integers: the longer one is the larger one. */
const bySeq = (a: RollupTuple, b: RollupTuple) => a[0].length - b[0].length || (a[0] < b[0] ? -1 : Number(a[0] > b[0]));

/** Everything that another lens or denominator says about a step, and `keys`; `null` where the upload cannot. */
export function lensFigures(
  { lens, denominator, keys }: { lens: Lens; denominator: Denominator; keys: readonly string[] },
  tuples: readonly RollupTuple[],
  successOf: (envId: number) => SuccessRule,
): Record<string, StoredFigure> {
  const rows = tuples.toSorted(bySeq).map(factsOf);
  const success = new Map([...new Set(tuples.map((tuple) => tuple[1]))].map((envId) => [String(envId), successOf(envId)]));
  const context = { success, denominator };
  const names = CANONICAL.flatMap((definition) => definition.keysFor(rows, context));
  const all =
    lens === 'canonical'
      ? names.map((key) => [key, metric(lens, key)!.compute(rows, context)] as const)
      : [...computeLens(lens, rows, context)];
  const figures = new Map(all.map(([key, answer]) => [key, stored(answer)]));
  for (const key of keys) if (!figures.has(key)) figures.set(key, stored(metric(lens, key)!.compute(rows, context)));
  return Object.fromEntries(figures);
}

export function factsOf(tuple: RollupTuple): RolloutFacts {
  const [
    id,
    envId,
    ,
    group,
    reward,
    rewardPositive,
    lastReward,
    rewardSteps,
    ,
    stop,
    failure,
    turns,
    ,
    calls,
    callErrors,
    tokensOut,
    tokensTool,
    ,
    ,
    ,
    ,
    toolTurns,
  ] = tuple;
  return {
    id,
    group,
    reward,
    rewardPositive,
    lastReward,
    rewardSteps,
    stop: wordOf(STOPS, stop),
    turns,
    assistantTurns: turns,
    toolTurns,
    calls,
    callErrors,
    tokensOut,
    tokensTool,
    failure: wordOf(FAILURES, failure),
    environment: String(envId),
    phase: null,
  };
}

const stored = (answer: MetricAnswer): StoredFigure => (isFigure(answer) ? tupleOf(answer) : null);
const tupleOf = ({ value, denominator, of, note }: Figure): StoredFigure =>
  note ? [value, denominator, of, note] : [value, denominator, of];
const sum = (tuples: readonly RollupTuple[], column: 12 | 13 | 14 | 17): number =>
  tuples.reduce((total, tuple) => total + tuple[column], 0);

/** In each two-bit field the weakest. */
function weakest(packed: readonly number[]): number {
  let result = packed[0] ?? 0;
  for (const value of packed) {
    if (value === result) continue;
    let next = 0;
    for (let shift = 0; shift < 18; shift += 2) next |= Math.min((result >> shift) & 3, (value >> shift) & 3) << shift;
    result = next;
  }
  return result;
}

function groupCounts(tuples: readonly RollupTuple[]): { groups: number; incomplete_groups: number } {
  const groups = new Map<string, { n: number; expected: number | null }>();
  for (const tuple of tuples) {
    const key = tuple[3];
    if (key === null) continue;
    const group = groups.get(key) ?? { n: 0, expected: null };
    groups.set(key, { n: group.n + 1, expected: tuple[8] === null ? group.expected : Math.max(tuple[8], group.expected ?? 0) });
  }
  const incomplete = [...groups.values()].filter(({ n, expected }) => expected !== null && n < expected).length;
  return { groups: groups.size, incomplete_groups: incomplete };
}

function groupRows(
  key: StepKey & { env_id: number },
  tuples: readonly RollupTuple[],
  rules: ReadonlyMap<string | null, SuccessRule>,
): GroupRow[] {
  const groups = new Map<string, GroupRow>();
  const rule = rules.get(String(key.env_id))!;
  for (const [, , taskId, groupKey, reward, , , , groupSize, , failure] of tuples) {
    if (groupKey === null) continue;
    const group = groups.get(groupKey) ?? emptyGroup(key, groupKey, taskId);
    groups.set(groupKey, group);
    group.n += 1;
    if (groupSize !== null) group.n_expected = Math.max(groupSize, group.n_expected ?? 0);
    if (failure !== null) group.errors += 1;
    if (reward === null) continue;
    group.scored += 1;
    if (rule.strict ? reward > rule.threshold : reward >= rule.threshold) group.successes += 1;
    group.sum += reward;
    group.sum_squares += reward * reward;
    group.min = Math.min(reward, group.min ?? reward);
    group.max = Math.max(reward, group.max ?? reward);
  }
  return [...groups.values()];
}

function emptyGroup(key: StepKey & { env_id: number }, groupKey: string, taskId: number | null): GroupRow {
  // One a group of every step: a spread costs more than all the rest of it.
  return {
    run_seq: key.run_seq,
    phase: key.phase,
    step: key.step,
    env_id: key.env_id,
    group_key: groupKey,
    task_id: taskId,
    n: 0,
    n_expected: null,
    scored: 0,
    errors: 0,
    successes: 0,
    sum: 0,
    sum_squares: 0,
    min: null,
    max: null,
  };
}
