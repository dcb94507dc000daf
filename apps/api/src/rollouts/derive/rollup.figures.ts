import {
  allGroupStats,
  ascending,
  computeLens,
  type Denominator,
  type Figure,
  figure,
  histogram,
  isFailed,
  isFigure,
  type Lens,
  listMetrics,
  metric,
  type MetricAnswer,
  type MetricContext,
  type MetricDefinition,
  type RolloutFacts,
  scoreOf,
  type SuccessRule,
} from '@palestra/metrics';
import { FAILURES, STOPS, wordOf } from '../codes.ts';
import type { GroupRow, RollupTuple, StepKey, StepRollup, StepSums, StepWindows } from './rollup.sql.ts';
import type { Known, StepPart } from './step-parts.sql.ts';

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

/** Rollups of a step, for all environments together and, where there are several, for each; and its groups. `parts` in any order. */
export function rollUpStep(
  step: StepKey,
  parts: readonly StepPart[],
  successOf: (envId: number) => SuccessRule,
): { rollups: StepRollup[]; groups: GroupRow[] } {
  if (parts.length === 0) return { rollups: [], groups: [] };
  const gathered = parts.map(gather);
  const byEnvironment = new Map<number, Gathered[]>();
  for (const part of gathered) byEnvironment.set(part.env_id, [...(byEnvironment.get(part.env_id) ?? []), part]);
  const context: MetricContext = { success: new Map([...byEnvironment.keys()].map((envId) => [String(envId), successOf(envId)])) };
  const environments = [...byEnvironment].map(([envId, own]) => ({ key: { ...step, env_id: envId }, own, whole: together(own) }));
  const rollups = environments.map(({ key, own, whole }) => ({
    ...rollUp(key, whole, context),
    windows: windowRollups(key, own, context),
  }));
  const all = { ...step, env_id: 0 };
  const whole =
    environments.length === 1
      ? { ...rollups[0]!, env_id: 0 }
      : { ...rollUp(all, together(gathered), context), windows: windowRollups(all, gathered, context) };
  return { rollups: [whole, ...rollups], groups: environments.flatMap(({ key, whole: own }) => groupRows(key, own, context)) };
}

/** Where the step is not known the moment of arrival stands for it. */
function windowRollups(key: StepKey & { env_id: number }, parts: readonly Gathered[], context: MetricContext): StepWindows | null {
  const byStart = new Map<number, Gathered[]>();
  for (const part of parts) if (part.window) byStart.set(part.window.from, [...(byStart.get(part.window.from) ?? []), part]);
  if (byStart.size === 0) return null;
  const windows = [...byStart.values()].map((own) => {
    const { run_seq: _run, phase: _phase, step: _step, env_id: _env, ...sums } = rollUp(key, together(own), context);
    const seqs = own.flatMap(({ window }) => [window!.first_seq, window!.last_seq]).toSorted(bySize);
    return { ...own[0]!.window!, first_seq: seqs[0]!, last_seq: seqs.at(-1)!, ...sums };
  });
  const { from, to } = windows[0]!;
  return { width_ms: to - from, windows: windows.toSorted((one, other) => one.from - other.from) };
}

/** A part with its rollouts as metrics read them. */
interface Gathered extends StepPart {
  facts: RolloutFacts[];
}

/** What the lists do not hold is null in the facts: `conduct` has the figures that are made of it. */
function gather(part: StepPart): Gathered {
  const environment = String(part.env_id);
  const facts = part.rewards.map((reward, at) => ({
    id: '',
    group: part.groups[at]!,
    reward,
    rewardPositive: null,
    lastReward: null,
    rewardSteps: 0,
    stop: wordOf(STOPS, part.stops[at]!),
    turns: null,
    assistantTurns: null,
    toolTurns: null,
    calls: 0,
    callErrors: 0,
    tokensOut: null,
    tokensTool: null,
    failure: wordOf(FAILURES, part.failures[at]!),
    environment,
    phase: null,
  }));
  return { ...part, facts };
}

function together(parts: readonly Gathered[]): Gathered {
  const [first] = parts;
  if (parts.length === 1) return first!;
  const list = <Key extends 'facts' | 'groups' | 'rewards' | 'stops' | 'failures' | 'taskIds' | 'groupSizes' | 'provenances'>(key: Key) =>
    ([] as unknown[]).concat(...parts.map((part) => part[key])) as Gathered[Key];
  const total = (of: (part: Gathered) => number) => parts.reduce((sum, part) => sum + of(part), 0);
  const known = (of: (part: Gathered) => Known): Known => ({ sum: total((part) => of(part).sum), known: total((part) => of(part).known) });
  return {
    env_id: first!.env_id,
    window: first!.window,
    facts: list('facts'),
    groups: list('groups'),
    rewards: list('rewards'),
    stops: list('stops'),
    failures: list('failures'),
    taskIds: list('taskIds'),
    groupSizes: list('groupSizes'),
    provenances: list('provenances'),
    rollouts: total((part) => part.rollouts),
    finished: total((part) => part.finished),
    messages: total((part) => part.messages),
    calls: total((part) => part.calls),
    callErrors: total((part) => part.callErrors),
    gaps: total((part) => part.gaps),
    mismatches: total((part) => part.mismatches),
    turns: known((part) => part.turns),
    tokensOut: known((part) => part.tokensOut),
    tokensTool: known((part) => part.tokensTool),
  };
}

/** Figures of counts, from their sums: sums of whole numbers are exact, so that they equal those of the metrics of these names. */
function conduct(part: Gathered): Record<string, Figure> {
  const mean = ({ sum, known }: Known) => figure(known === 0 ? null : sum / known, known, part.rollouts);
  return {
    tool_error: figure(part.calls === 0 ? null : part.callErrors / part.calls, part.calls, part.calls),
    turns: mean(part.turns),
    calls: mean({ sum: part.calls, known: part.rollouts }),
    tokens_out: mean(part.tokensOut),
    tokens_tool: mean(part.tokensTool),
  };
}

function rollUp(key: StepKey & { env_id: number }, part: Gathered, context: MetricContext): StepSums {
  const { facts } = part;
  const rules = [...(context.success as ReadonlyMap<string, SuccessRule>).values()];
  const stops: Record<string, number> = {};
  for (const { stop } of facts) stops[stop ?? 'unknown'] = (stops[stop ?? 'unknown'] ?? 0) + 1;
  // Ascending, so that sums have the same last bit in whatever order rows come.
  const rewards = ascending(part.rewards.filter((reward) => reward !== null));
  const ready = conduct(part);
  const figures: StepFigures = {
    canonical: Object.fromEntries(
      CANONICAL.flatMap((definition) =>
        definition
          .keysFor(facts, context)
          .map((name) => [name, stored(ready[name] ?? canonicalMetric(name).compute(facts, context))] as const),
      ),
    ),
    histogram: histogram(rewards),
    rewards: rewardCounts(facts),
    stops,
    success: rules.length === 1 ? rules[0]! : null,
    ...groupCounts(part),
    calls: part.calls,
    call_errors: part.callErrors,
    gaps: part.gaps,
    mismatches: part.mismatches,
  };
  return {
    ...key,
    rollouts: part.rollouts,
    scored: rewards.length,
    errors: part.failures.reduce<number>((errors, failure) => (failure === null ? errors : errors + 1), 0),
    finished: part.finished,
    messages: part.messages,
    reward_sum: rewards.reduce((total, reward) => total + reward, 0),
    provenance: weakest(part.provenances),
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
    let count = counts.get(reward);
    if (count === undefined) counts.set(reward, (count = [reward, 0, 0]));
    if (counts.size > MAX_COUNTED_REWARDS) return null;
    count[1] += 1;
    if (!isFailed(row)) count[2] += 1;
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

/** Groups of which not all rollouts are here are incomplete. */
function groupCounts({ groups: keys, groupSizes }: Gathered): { groups: number; incomplete_groups: number } {
  const groups = new Map<string, { n: number; expected: number | null }>();
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at]!;
    if (key === null) continue;
    let group = groups.get(key);
    if (group === undefined) groups.set(key, (group = { n: 0, expected: null }));
    const expected = groupSizes[at]!;
    group.n += 1;
    if (expected !== null) group.expected = Math.max(expected, group.expected ?? 0);
  }
  const incomplete = [...groups.values()].filter(({ n, expected }) => expected !== null && n < expected).length;
  return { groups: groups.size, incomplete_groups: incomplete };
}

function groupRows(key: StepKey & { env_id: number }, part: Gathered, context: MetricContext): GroupRow[] {
  const groups = new Map<string, GroupRow>();
  for (const [groupKey, { n, scored, c, sum, sumsq, min, max }] of allGroupStats(part.facts, context)) {
    const found = { n, scored, successes: c, sum, sum_squares: sumsq, min, max };
    groups.set(groupKey, { ...key, group_key: groupKey, task_id: null, n_expected: null, errors: 0, ...found });
  }
  for (let at = 0; at < part.groups.length; at += 1) {
    const groupKey = part.groups[at]!;
    if (groupKey === null) continue;
    const group = groups.get(groupKey)!;
    const [size, task] = [part.groupSizes[at]!, part.taskIds[at]!];
    if (size !== null) group.n_expected = Math.max(size, group.n_expected ?? 0);
    if (task !== null) group.task_id = Math.min(task, group.task_id ?? task);
    if (part.failures[at] !== null) group.errors += 1;
  }
  return [...groups.values()];
}
