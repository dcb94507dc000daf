import { isTruncated } from '../canonical.ts';
import { isFailedAt } from '../denominators.ts';
import { figure, type MetricAnswer, unavailable } from '../figure.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { passAtK, passHatK, powersOfTwo } from '../pass.ts';
import { countOf, type MetricContext, placesWhere, type RolloutColumns } from '../rollout-columns.ts';
import { compensatedSum, max, mean, min, percentile } from '../summary.ts';
import { groupRewards, groupsOf, joinNotes, largestGroup, notInUpload, nullAsZero, subset, ungroupedNote } from './shared.ts';

type Subset = 'all' | 'effective';

/** `effective`: neither errored nor cancelled. prime-rl has no null: the reward of an unscored trace is 0. */
const tracesOf = (columns: RolloutColumns, which: Subset): RolloutColumns =>
  which === 'all'
    ? columns
    : subset(
        columns,
        placesWhere(columns, (at) => !isFailedAt(columns, at)),
      );

function overRewards(columns: RolloutColumns, which: Subset, reduce: (rewards: number[]) => number | null): MetricAnswer {
  const { rewards, note } = nullAsZero(tracesOf(columns, which));
  return figure(reduce(rewards), rewards.length, countOf(columns), note);
}

/** Group fractions. `none`: the rewards sum to 0 in Python 3.12, which prime-rl requires, so [-1, 1] and [0.1, 0.2, -0.1, -0.2] count. */
function solved(columns: RolloutColumns, which: 'none' | 'all' | 'some'): MetricAnswer {
  const groups = groupRewards(columns);
  const none = groups.filter((rewards) => compensatedSum(rewards) === 0).length;
  const all = groups.filter((rewards) => rewards.every((reward) => reward === 1)).length;
  const count = { none, all, some: groups.length - none - all }[which];
  return figure(
    groups.length === 0 ? null : count / groups.length,
    groups.length,
    groups.length,
    joinNotes(ungroupedNote(columns), nullAsZero(columns).note),
  );
}

const isBinary = (columns: RolloutColumns) => nullAsZero(columns).rewards.every((reward) => reward === 0 || reward === 1);

function pass(columns: RolloutColumns, k: number, estimate: (n: number, c: number, k: number) => number | null): MetricAnswer {
  const effective = tracesOf(columns, 'effective');
  const groups = groupsOf(effective);
  if (!isBinary(effective)) return figure(null, 0, groups.length, 'prime-rl prints none: a reward is neither 0 nor 1');
  const values = groups
    .map((group) => estimate(group.length, group.filter((at) => effective.reward[at] === 1).length, k))
    .filter((value) => value !== null);
  return figure(mean(values), values.length, groups.length, joinNotes(ungroupedNote(effective), nullAsZero(effective).note));
}

function ks(columns: RolloutColumns): string[] {
  const effective = tracesOf(columns, 'effective');
  return isBinary(effective) ? powersOfTwo(largestGroup(effective)).map(String) : [];
}

function truncated(columns: RolloutColumns, which: Subset): MetricAnswer {
  const { stop } = tracesOf(columns, which);
  const unknown = stop.filter((reason) => reason === null || reason === 'unknown').length;
  if (unknown > 0) return unavailable(`stop of ${unknown} rollouts is not known`);
  return figure(mean(stop.map((reason) => Number(isTruncated(reason)))), stop.length, countOf(columns));
}

const sizes = (columns: RolloutColumns, context: MetricContext) => [context.n ?? largestGroup(columns)].filter((n) => n > 0).map(String);
function shareOf(columns: RolloutColumns, test: (at: number) => boolean): MetricAnswer {
  const values = columns.stop.map((_, at) => Number(test(at)));
  return figure(mean(values), values.length, values.length);
}

const DISTRIBUTION = [
  ['mean', mean],
  ['max', max],
  ['min', min],
  ['p10', (values: number[]) => percentile(values, 0.1)],
  ['p90', (values: number[]) => percentile(values, 0.9)],
] as const;

const ofSubset = (which: Subset): MetricTemplate[] => [
  ...DISTRIBUTION.map(([how, reduce]): MetricTemplate => ({
    key: `${which}/reward/${how}`,
    label: `Reward, ${how}, ${which}`,
    formula: `${how} of r over ${which} traces`,
    needs: ['reward', 'stop', 'failure'],
    compute: (columns) => overRewards(columns, which, reduce),
  })),
  {
    key: `${which}/is_truncated/mean`,
    label: `Truncated, ${which}`,
    formula: 'stop at a limit / traces',
    needs: ['stop'],
    compute: (columns) => truncated(columns, which),
  },
  {
    key: `${which}/avg@{n}`,
    label: `avg@n, ${which}`,
    formula: `mean of r over ${which} traces; n is a label`,
    needs: ['reward', 'stop', 'failure'],
    parameters: sizes,
    compute: (columns) => overRewards(columns, which, mean),
  },
  ...notInUpload(
    'needs the trace with its branches',
    ['num_turns', 'num_branches', 'num_total_tokens', 'num_input_tokens', 'num_output_tokens'].map((name) => `${which}/${name}/mean`),
  ),
];

export const primeRlLens: LensDefinition = {
  lens: 'prime-rl',
  source: 'src/prime_rl/orchestrator/metrics.py, utils.py @ 559b447',
  // Revision 2: sums as in Python 3.12.
  revision: 2,
  metrics: [
    ...ofSubset('all'),
    ...ofSubset('effective'),
    ...(['none', 'all', 'some'] as const).map((which): MetricTemplate => ({
      key: `all/solved_${which}`,
      label: `Groups solved: ${which}`,
      formula: { none: 'Σ r = 0', all: 'all r = 1', some: 'the rest' }[which] + ' / groups',
      needs: ['group', 'reward'],
      compute: (columns) => solved(columns, which),
    })),
    {
      key: 'effective/pass@{k}',
      label: 'pass@k',
      formula: 'unbiased, c = #(r = 1), effective traces, only if all r ∈ {0, 1}',
      needs: ['group', 'reward', 'stop', 'failure'],
      parameters: ks,
      compute: (columns, _context, k) => pass(columns, Number(k), passAtK),
    },
    {
      key: 'effective/pass^{k}',
      label: 'pass^k',
      formula: 'C(c,k)/C(n,k), effective traces, only if all r ∈ {0, 1}',
      needs: ['group', 'reward', 'stop', 'failure'],
      parameters: ks,
      compute: (columns, _context, k) => pass(columns, Number(k), passHatK),
    },
    {
      key: 'all/has_error/mean',
      label: 'Errors',
      formula: 'errored traces / traces',
      needs: ['stop', 'failure'],
      compute: (columns) => shareOf(columns, (at) => isFailedAt(columns, at) && columns.stop[at] !== 'cancelled'),
    },
    {
      key: 'all/cancelled/mean',
      label: 'Cancelled',
      formula: 'cancelled traces / traces',
      needs: ['stop'],
      compute: (columns) => shareOf(columns, (at) => columns.stop[at] === 'cancelled'),
    },
    ...notInUpload('needs the policy version of every token', ['off_policy/mean', 'off_policy/max']),
  ],
  // `train/agg/all/agent/solved_none`, `eval/<env>/effective/<agent>/pass@2`, with or without an agent; `pass@2` alone means `effective`.
  aliases: (name) => {
    const printed = /^(?:train|eval)\/[^/]+\/(all|effective)\/(?:([^/]+)\/)?(.+)$/.exec(name);
    if (printed === null) return [`effective/${name}`, `all/${name}`];
    const [, subset, agent, rest] = printed;
    return [`${subset}/${rest}`, `${subset}/${agent}/${rest}`];
  },
};
