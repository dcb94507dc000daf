import { isTruncated } from '../canonical.ts';
import { isFailed } from '../denominators.ts';
import { figure, type MetricAnswer, type MetricContext, type RolloutFacts, unavailable } from '../facts.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { passAtK, passHatK, powersOfTwo } from '../pass.ts';
import { compensatedSum, max, mean, min, percentile } from '../summary.ts';
import { groupsOf, joinNotes, largestGroup, notInUpload, nullAsZero, ungroupedNote } from './shared.ts';

type Rows = readonly RolloutFacts[];
type Subset = 'all' | 'effective';

/** `effective`: neither errored nor cancelled. prime-rl knows no null, an unscored trace has 0. */
const subsetOf = (rows: Rows, subset: Subset) => (subset === 'all' ? [...rows] : rows.filter((row) => !isFailed(row)));

function overRewards(rows: Rows, subset: Subset, reduce: (rewards: number[]) => number | null): MetricAnswer {
  const { rewards, note } = nullAsZero(subsetOf(rows, subset));
  return figure(reduce(rewards), rewards.length, rows.length, note);
}

/** Group fractions; `none` is "the rewards sum to 0" in Python 3.12, which prime-rl needs, so that [-1, 1] and [0.1, 0.2, -0.1, -0.2] count. */
function solved(rows: Rows, which: 'none' | 'all' | 'some'): MetricAnswer {
  const groups = groupsOf(rows).map((group) => nullAsZero(group).rewards);
  const none = groups.filter((rewards) => compensatedSum(rewards) === 0).length;
  const all = groups.filter((rewards) => rewards.every((reward) => reward === 1)).length;
  const count = { none, all, some: groups.length - none - all }[which];
  return figure(
    groups.length === 0 ? null : count / groups.length,
    groups.length,
    groups.length,
    joinNotes(ungroupedNote(rows), nullAsZero(rows).note),
  );
}

const isBinary = (rows: Rows) => nullAsZero(rows).rewards.every((reward) => reward === 0 || reward === 1);

function pass(rows: Rows, k: number, estimate: (n: number, c: number, k: number) => number | null): MetricAnswer {
  const effective = subsetOf(rows, 'effective');
  const groups = groupsOf(effective);
  if (!isBinary(effective)) return figure(null, 0, groups.length, 'prime-rl prints none: a reward is neither 0 nor 1');
  const values = groups
    .map((group) => estimate(group.length, group.filter((row) => row.reward === 1).length, k))
    .filter((value) => value !== null);
  return figure(mean(values), values.length, groups.length, joinNotes(ungroupedNote(effective), nullAsZero(effective).note));
}

function ks(rows: Rows): string[] {
  const effective = subsetOf(rows, 'effective');
  return isBinary(effective) ? powersOfTwo(largestGroup(effective)).map(String) : [];
}

function truncated(rows: Rows, subset: Subset): MetricAnswer {
  const chosen = subsetOf(rows, subset);
  const unknown = chosen.filter((row) => row.stop === null || row.stop === 'unknown').length;
  if (unknown > 0) return unavailable(`stop of ${unknown} rollouts is not known`);
  return figure(mean(chosen.map((row) => Number(isTruncated(row)))), chosen.length, rows.length);
}

const sizes = (rows: Rows, context: MetricContext) => [context.n ?? largestGroup(rows)].filter((n) => n > 0).map(String);
const DISTRIBUTION = [
  ['mean', mean],
  ['max', max],
  ['min', min],
  ['p10', (values: number[]) => percentile(values, 0.1)],
  ['p90', (values: number[]) => percentile(values, 0.9)],
] as const;

const ofSubset = (subset: Subset): MetricTemplate[] => [
  ...DISTRIBUTION.map(([how, reduce]): MetricTemplate => ({
    key: `${subset}/reward/${how}`,
    label: `Reward, ${how}, ${subset}`,
    formula: `${how} of r over ${subset} traces`,
    needs: ['reward', 'stop', 'failure'],
    compute: (rows) => overRewards(rows, subset, reduce),
  })),
  {
    key: `${subset}/is_truncated/mean`,
    label: `Truncated, ${subset}`,
    formula: 'stop at a limit / traces',
    needs: ['stop'],
    compute: (rows) => truncated(rows, subset),
  },
  {
    key: `${subset}/avg@{n}`,
    label: `avg@n, ${subset}`,
    formula: `mean of r over ${subset} traces; n is a label`,
    needs: ['reward', 'stop', 'failure'],
    parameters: sizes,
    compute: (rows) => overRewards(rows, subset, mean),
  },
  ...notInUpload(
    'needs the trace with its branches',
    ['num_turns', 'num_branches', 'num_total_tokens', 'num_input_tokens', 'num_output_tokens'].map((name) => `${subset}/${name}/mean`),
  ),
];

export const primeRlLens: LensDefinition = {
  lens: 'prime-rl',
  source: 'src/prime_rl/orchestrator/metrics.py, utils.py @ 559b447',
  // 2: sums are those of Python 3.12.
  revision: 2,
  metrics: [
    ...ofSubset('all'),
    ...ofSubset('effective'),
    ...(['none', 'all', 'some'] as const).map((which): MetricTemplate => ({
      key: `all/solved_${which}`,
      label: `Groups solved: ${which}`,
      formula: { none: 'Σ r = 0', all: 'all r = 1', some: 'the rest' }[which] + ' / groups',
      needs: ['group', 'reward'],
      compute: (rows) => solved(rows, which),
    })),
    {
      key: 'effective/pass@{k}',
      label: 'pass@k',
      formula: 'unbiased, c = #(r = 1), effective traces, only if all r ∈ {0, 1}',
      needs: ['group', 'reward', 'stop', 'failure'],
      parameters: ks,
      compute: (rows, _context, k) => pass(rows, Number(k), passAtK),
    },
    {
      key: 'effective/pass^{k}',
      label: 'pass^k',
      formula: 'C(c,k)/C(n,k), effective traces, only if all r ∈ {0, 1}',
      needs: ['group', 'reward', 'stop', 'failure'],
      parameters: ks,
      compute: (rows, _context, k) => pass(rows, Number(k), passHatK),
    },
    {
      key: 'all/has_error/mean',
      label: 'Errors',
      formula: 'errored traces / traces',
      needs: ['stop', 'failure'],
      compute: (rows) => figure(mean(rows.map((row) => Number(isFailed(row) && row.stop !== 'cancelled'))), rows.length, rows.length),
    },
    {
      key: 'all/cancelled/mean',
      label: 'Cancelled',
      formula: 'cancelled traces / traces',
      needs: ['stop'],
      compute: (rows) => figure(mean(rows.map((row) => Number(row.stop === 'cancelled'))), rows.length, rows.length),
    },
    ...notInUpload('needs the policy version of every token', ['off_policy/mean', 'off_policy/max']),
  ],
  // `train/agg/all/agent/solved_none`, `eval/<env>/effective/<agent>/pass@2`, and without an agent; `pass@2` alone is the effective one.
  aliases: (name) => {
    const printed = /^(?:train|eval)\/[^/]+\/(all|effective)\/(?:([^/]+)\/)?(.+)$/.exec(name);
    if (printed === null) return [`effective/${name}`, `all/${name}`];
    const [, subset, agent, rest] = printed;
    return [`${subset}/${rest}`, `${subset}/${agent}/${rest}`];
  },
};
