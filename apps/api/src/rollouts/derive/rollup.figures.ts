import {
  canonicalOfColumns,
  computeLens,
  type Denominator,
  FAILED,
  type Figure,
  figure,
  groupBy,
  type GroupStats,
  histogram,
  isFailed,
  isFigure,
  isSuccess,
  isTruncated,
  type Lens,
  listMetrics,
  metric,
  type MetricAnswer,
  type RolloutFacts,
  STOP_KNOWN,
  SUCCEEDS,
  type SuccessRule,
  TRUNCATED,
} from '@palestra/metrics';
import { FAILURES, STOPS, wordOf } from '../codes.ts';
import type { GroupRow, RollupTuple, StepKey, StepRollup, StepSums, StepWindows } from './rollup.sql.ts';
import { type Known, NO_FAILURE, NO_STOP, type StepPart, type StepTotals, together } from './step-columns.ts';

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

/** Rollups of a step, for all environments together and, where there are several, for each; and its groups. `parts` in any order. */
export function rollUpStep(
  step: StepKey,
  parts: readonly StepPart[],
  successOf: (envId: number) => SuccessRule,
): { rollups: StepRollup[]; groups: GroupRow[] } {
  if (parts.length === 0) return { rollups: [], groups: [] };
  const byEnvironment = groupBy(parts, (part) => part.env_id);
  const rules = new Map([...byEnvironment.keys()].map((envId) => [envId, successOf(envId)]));
  const judged = new Map(parts.map((part) => [part, judge(part, rules.get(part.env_id)!)]));
  const sums = (own: readonly StepPart[]) => rollUp(own, judged, rules);
  const environments = [...byEnvironment].map(([envId, own]) => ({ key: { ...step, env_id: envId }, own, made: sums(own) }));
  const rollups = environments.map(({ key, own, made }) => ({ ...key, ...made.sums, windows: windowRollups(own, sums) }));
  const whole =
    environments.length === 1
      ? { ...rollups[0]!, env_id: 0 }
      : { ...step, env_id: 0, ...sums(parts).sums, windows: windowRollups(parts, sums) };
  return { rollups: [whole, ...rollups], groups: environments.flatMap(({ key, made }) => groupRows(key.env_id, made)) };
}

/** Where the step is not known the moment of arrival stands for it. */
function windowRollups(parts: readonly StepPart[], sums: (own: readonly StepPart[]) => Summed): StepWindows | null {
  const windowed = parts.filter((part) => part.window !== null);
  if (windowed.length === 0) return null;
  const windows = [...groupBy(windowed, (part) => part.window!.from).values()].map((own) => {
    const seqs = own.flatMap(({ window }) => [window!.first_seq, window!.last_seq]).toSorted(bySize);
    return { ...own[0]!.window!, first_seq: seqs[0]!, last_seq: seqs.at(-1)!, ...sums(own).sums };
  });
  const { from, to } = windows[0]!;
  return { width_ms: to - from, windows: windows.toSorted((one, other) => one.from - other.from) };
}

const FLAGS_OF_STOP = Uint8Array.from({ length: NO_STOP + 1 }, (_, code) => {
  const stop = wordOf(STOPS, code);
  if (stop === null || stop === 'unknown') return 0;
  return STOP_KNOWN | (isTruncated({ stop }) ? TRUNCATED : 0) | (isFailed({ stop, failure: null }) ? FAILED : 0);
});

/** Of each rollout what it counts for in figures of success, failure and stops. */
function judge({ reward, stop, failure }: StepPart, rule: SuccessRule): Uint8Array {
  const flags = new Uint8Array(reward.length);
  for (let at = 0; at < flags.length; at += 1) {
    let flag = FLAGS_OF_STOP[stop[at]!]!;
    if (failure[at] !== NO_FAILURE) flag |= FAILED;
    if (isSuccess(reward[at]!, rule)) flag |= SUCCEEDS;
    flags[at] = flag;
  }
  return flags;
}

/** Figures of counts, from their sums: sums of whole numbers are exact, so that they equal those of the metrics of these names. */
function conduct({ rollouts, calls, callErrors, turns, tokensOut, tokensTool }: StepTotals): Record<string, Figure> {
  const mean = ({ sum, known }: Known) => figure(known === 0 ? null : sum / known, known, rollouts);
  return {
    tool_error: figure(calls === 0 ? null : callErrors / calls, calls, calls),
    turns: mean(turns),
    calls: mean({ sum: calls, known: rollouts }),
    tokens_out: mean(tokensOut),
    tokens_tool: mean(tokensTool),
  };
}

/** Sums of some parts of a step, and what groups are made of. */
interface Summed {
  sums: Omit<StepSums, keyof StepKey | 'env_id'>;
  part: StepPart;
  groups: readonly (GroupStats | null)[];
}

function rollUp(parts: readonly StepPart[], judged: ReadonlyMap<StepPart, Uint8Array>, rules: ReadonlyMap<number, SuccessRule>): Summed {
  const part = together(parts);
  const flags = parts.length === 1 ? judged.get(part)! : concatenated(parts.map((own) => judged.get(own)!));
  const { totals } = part;
  const { figures, groups, rewards } = canonicalOfColumns({ reward: part.reward, group: part.group, groups: part.groupKeys.length, flags });
  const canonical = { ...Object.fromEntries(figures), ...conduct(totals) };
  const ready: StepFigures = {
    canonical: Object.fromEntries(Object.entries(canonical).map(([key, answer]) => [key, tupleOf(answer)])),
    histogram: histogram(rewards),
    rewards: rewardCounts(part, flags),
    stops: stopCounts(part),
    success: rules.size === 1 ? [...rules.values()][0]! : null,
    ...groupCounts(part, groups),
    calls: totals.calls,
    call_errors: totals.callErrors,
    gaps: totals.gaps,
    mismatches: totals.mismatches,
  };
  const sums = {
    rollouts: totals.rollouts,
    scored: rewards.length,
    errors: failures(part),
    finished: totals.finished,
    messages: totals.messages,
    // Ascending, so that sums have the same last bit in whatever order rows come.
    reward_sum: rewards.reduce((total, reward) => total + reward, 0),
    provenance: totals.provenance,
    figures: ready,
  };
  return { sums, part, groups };
}

function concatenated(arrays: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(arrays.reduce((total, { length }) => total + length, 0));
  let from = 0;
  for (const array of arrays) {
    whole.set(array, from);
    from += array.length;
  }
  return whole;
}

function failures({ failure }: StepPart): number {
  let count = 0;
  for (const code of failure) if (code !== NO_FAILURE) count += 1;
  return count;
}

function stopCounts({ stop }: StepPart): Record<string, number> {
  const counts = new Uint32Array(NO_STOP + 1);
  for (const code of stop) counts[code]! += 1;
  const stops: Record<string, number> = {};
  counts.forEach((count, code) => {
    const name = wordOf(STOPS, code) ?? 'unknown';
    if (count > 0) stops[name] = (stops[name] ?? 0) + count;
  });
  return stops;
}

/** Different rewards that a step may have for each to be counted. */
const MAX_COUNTED_REWARDS = 50;

function rewardCounts({ reward }: StepPart, flags: Uint8Array): NonNullable<StepFigures['rewards']> | null {
  const counts = new Map<number, [number, number, number]>();
  for (let at = 0; at < reward.length; at += 1) {
    const value = reward[at]!;
    if (Number.isNaN(value)) continue;
    let count = counts.get(value);
    if (count === undefined) counts.set(value, (count = [value, 0, 0]));
    if (counts.size > MAX_COUNTED_REWARDS) return null;
    count[1] += 1;
    if ((flags[at]! & FAILED) === 0) count[2] += 1;
  }
  return [...counts.values()].toSorted(([a], [b]) => a - b);
}

/** Decimal texts of positive integers: the longer one is the larger one. */
const bySize = (a: string, b: string) => a.length - b.length || (a < b ? -1 : Number(a > b));
const bySeq = (a: RollupTuple, b: RollupTuple) => bySize(a[0], b[0]);

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

/** By number of the group the size that it should have; -1 = not known. */
function expectedSizes({ group, groupSize, groupKeys }: StepPart): Int32Array {
  const sizes = new Int32Array(groupKeys.length).fill(-1);
  for (let at = 0; at < group.length; at += 1) {
    const of = group[at]!;
    if (of >= 0 && groupSize[at]! > sizes[of]!) sizes[of] = groupSize[at]!;
  }
  return sizes;
}

/** Groups of which not all rollouts are here are incomplete. */
function groupCounts(part: StepPart, groups: readonly (GroupStats | null)[]): { groups: number; incomplete_groups: number } {
  const sizes = expectedSizes(part);
  let [count, incomplete] = [0, 0];
  groups.forEach((stats, of) => {
    if (stats === null) return;
    count += 1;
    if (stats.n < sizes[of]!) incomplete += 1;
  });
  return { groups: count, incomplete_groups: incomplete };
}

function groupRows(envId: number, { part, groups }: Summed): GroupRow[] {
  const sizes = expectedSizes(part);
  const tasks = new Int32Array(groups.length).fill(-1);
  const errors = new Int32Array(groups.length);
  for (let at = 0; at < part.group.length; at += 1) {
    const of = part.group[at]!;
    if (of < 0) continue;
    const task = part.taskId[at]!;
    if (task >= 0 && (tasks[of]! < 0 || task < tasks[of]!)) tasks[of] = task;
    if (part.failure[at] !== NO_FAILURE) errors[of]! += 1;
  }
  const known = (value: number) => (value < 0 ? null : value);
  return groups.flatMap((stats, of) => {
    if (stats === null) return [];
    const { n, scored, c: successes, sum, sumsq: sum_squares, min, max } = stats;
    const [task_id, n_expected] = [known(tasks[of]!), known(sizes[of]!)];
    return [
      {
        group_key: part.groupKeys[of]!,
        env_id: envId,
        task_id,
        n,
        n_expected,
        scored,
        errors: errors[of]!,
        successes,
        sum,
        sum_squares,
        min,
        max,
      },
    ];
  });
}
