import {
  canonicalOfSums,
  computeLens,
  type Figure,
  figure,
  groupBy,
  histogram,
  isFigure,
  listMetrics,
  metric,
  type MetricAnswer,
  type RewardCount,
  type RolloutFacts,
  type SuccessRule,
} from '@palestra/metrics';
import { type Denominator, type Lens, STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import { wordOf } from '../../codes.ts';
import { PartSums, type Sums } from './part-sums.ts';
import type { GroupRow, RollupTuple, StepKey, StepRollup, StepSums, StepWindows } from './rollup.sql.ts';
import { type Known, NO_FAILURE, type StepPart, type StepTotals, together } from './step-columns.ts';

/** A figure as it is stored: value, denominator, of how many, note. `null`: the upload cannot give it. */
export type StoredFigure = [value: number | null, denominator: number, of: number, note?: string] | null;

/** What a step's rollup holds beside its columns. */
export interface StepFigures {
  canonical: Record<string, StoredFigure>;
  histogram: { low: number; high: number; counts: number[] };
  /** How many rollouts, and effective ones, have each reward; null when these are too many different ones to count each. */
  rewards?: RewardCount[] | null;
  stops: Record<string, number>;
  success: { threshold: number; strict: boolean } | null;
  groups: number;
  incomplete_groups: number;
  calls: number;
  call_errors: number;
  gaps: number;
  mismatches: number;
  verified?: number;
  /** Of other lenses and denominators (`skyrl/scored`, `canonical/all`, `prime-rl@2/scored`), by key: made when somebody first asks. */
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
  const sums = new PartSums(parts, (envId) => rules.get(envId)!);
  const rollUp = (envId: number, own: readonly StepPart[], summed: Sums): StepRollup => {
    const windows = windowRollups(own, (ofWindow) => storedSums(sums.of(ofWindow), rules));
    return { ...step, env_id: envId, ...storedSums(summed, rules), windows };
  };
  const environments = [...byEnvironment].map(([envId, own]) => ({ envId, own, summed: sums.of(own) }));
  const rollups = environments.map(({ envId, own, summed }) => rollUp(envId, own, summed));
  const whole = rollups.length === 1 ? { ...rollups[0]!, env_id: 0 } : rollUp(0, parts, sums.of(parts));
  return { rollups: [whole, ...rollups], groups: environments.flatMap(({ envId, own, summed }) => groupRows(envId, own, summed)) };
}

/** Where the step is not known the moment of arrival stands for it. */
function windowRollups(parts: readonly StepPart[], stored: (own: readonly StepPart[]) => StoredSums): StepWindows | null {
  const windowed = parts.filter((part) => part.window !== null);
  if (windowed.length === 0) return null;
  const windows = [...groupBy(windowed, (part) => part.window!.from).values()].map((own) => {
    const seqs = own.flatMap(({ window }) => [window!.first_seq, window!.last_seq]).toSorted(bySize);
    return { ...own[0]!.window!, first_seq: seqs[0]!, last_seq: seqs.at(-1)!, ...stored(own) };
  });
  const { from, to } = windows[0]!;
  return { width_ms: to - from, windows: windows.toSorted((one, other) => one.from - other.from) };
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

type StoredSums = Omit<StepSums, keyof StepKey | 'env_id'>;

function storedSums(sums: Sums, rules: ReadonlyMap<number, SuccessRule>): StoredSums {
  const { columns, totals, failures, stops } = sums;
  const { rewards, rewardCounts } = columns;
  const canonical = { ...Object.fromEntries(canonicalOfSums(columns)), ...conduct(totals) };
  const figures: StepFigures = {
    canonical: Object.fromEntries(Object.entries(canonical).map(([key, answer]) => [key, tupleOf(answer)])),
    histogram: histogram(rewards),
    rewards: rewardCounts,
    stops: stopCounts(stops),
    success: rules.size === 1 ? [...rules.values()][0]! : null,
    ...groupCounts(sums),
    calls: totals.calls,
    call_errors: totals.callErrors,
    gaps: totals.gaps,
    mismatches: totals.mismatches,
  };
  return {
    rollouts: totals.rollouts,
    scored: rewards.length,
    errors: failures,
    finished: totals.finished,
    messages: totals.messages,
    // Ascending, so that sums have the same last bit in whatever order rows come.
    reward_sum: rewards.reduce((total, reward) => total + reward, 0),
    provenance: totals.provenance,
    figures,
  };
}

function stopCounts(byCode: Uint32Array): Record<string, number> {
  const stops: Record<string, number> = {};
  byCode.forEach((count, code) => {
    const name = wordOf(STOP_REASONS, code) ?? 'unknown';
    if (count > 0) stops[name] = (stops[name] ?? 0) + count;
  });
  return stops;
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
    stop: wordOf(STOP_REASONS, stop),
    turns,
    assistantTurns: turns,
    toolTurns,
    calls,
    callErrors,
    tokensOut,
    tokensTool,
    failure: wordOf(UNSCORED_FAILURES, failure),
    environment: String(envId),
    phase: null,
  };
}

const stored = (answer: MetricAnswer): StoredFigure => (isFigure(answer) ? tupleOf(answer) : null);
const tupleOf = ({ value, denominator, of, note }: Figure): StoredFigure =>
  note ? [value, denominator, of, note] : [value, denominator, of];

/** Groups of which not all rollouts are here are incomplete. */
function groupCounts({ columns, groupSizes }: Sums): { groups: number; incomplete_groups: number } {
  let [count, incomplete] = [0, 0];
  columns.groups.forEach((stats, of) => {
    if (stats === null) return;
    count += 1;
    if (stats.n < groupSizes[of]!) incomplete += 1;
  });
  return { groups: count, incomplete_groups: incomplete };
}

function groupRows(envId: number, parts: readonly StepPart[], { columns: { groups }, groupSizes }: Sums): GroupRow[] {
  const part = together(parts);
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
    const [task_id, n_expected] = [known(tasks[of]!), known(groupSizes[of]!)];
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
