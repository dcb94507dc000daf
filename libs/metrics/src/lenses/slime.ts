import { figure, type MetricAnswer } from '../figure.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { passAtK, powersOfTwo } from '../pass.ts';
import type { RolloutColumns } from '../rollout-columns.ts';
import { max, mean, min, percentile } from '../summary.ts';
import { groupRewards, groupsOf, joinNotes, notInUpload, nullAsZero, ungroupedNote, withTrainedRewards } from './shared.ts';

function overRewards(uploaded: RolloutColumns, reduce: (rewards: number[]) => number | null): MetricAnswer {
  const { columns, note } = withTrainedRewards(uploaded);
  const { rewards, note: nulls } = nullAsZero(columns);
  return figure(reduce(rewards), rewards.length, rewards.length, joinNotes(note, nulls));
}

/** slime asserts groups of one size, and prints nothing for groups of one. */
function passRate(uploaded: RolloutColumns, k: number): MetricAnswer {
  const { columns, note } = withTrainedRewards(uploaded);
  const groups = groupRewards(columns);
  const sizes = new Set(groups.map((group) => group.length));
  if (sizes.size > 1 || sizes.has(1)) return figure(null, 0, groups.length, 'slime prints none: it needs groups of one size above 1');
  const values = groups
    .map((rewards) => passAtK(rewards.length, rewards.filter((reward) => reward === 1).length, k))
    .filter((value) => value !== null);
  return figure(mean(values), values.length, groups.length, joinNotes(note, ungroupedNote(columns), nullAsZero(columns).note));
}

function ks(columns: RolloutColumns): string[] {
  const sizes = [...new Set(groupsOf(columns).map((group) => group.length))];
  return sizes.length === 1 && sizes[0]! > 1 ? powersOfTwo(sizes[0]!).map(String) : [];
}

/** Python's `round(x, 1)` with one decimal: half to even where the binary number is exactly a half, which holds for odd quarters only. */
export function roundedKey(value: number): string {
  if (Number.isInteger(value * 4) && !Number.isInteger(value * 2)) {
    const lower = Math.floor(value * 10);
    return ((lower % 2 === 0 ? lower : lower + 1) / 10).toFixed(1);
  }
  return Object.is(value, -0) ? '-0.0' : value.toFixed(1);
}

/** Counts groups with exactly equal rewards, groups of one included, by rounded reward. */
function zeroStdCounts(uploaded: RolloutColumns): { counts: Map<string, number>; groups: number; note: string | null } {
  const { columns, note } = withTrainedRewards(uploaded);
  const groups = groupRewards(columns);
  const counts = new Map<string, number>();
  for (const rewards of groups) {
    if (rewards.some((reward) => reward !== rewards[0])) continue;
    const key = roundedKey(rewards[0]!);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return {
    counts,
    groups: groups.length,
    note: joinNotes('a count, groups of one included', note, ungroupedNote(columns), nullAsZero(columns).note),
  };
}

const STATISTICS = [
  ['mean', mean],
  ['median', (values: number[]) => percentile(values, 0.5)],
  ['max', max],
  ['min', min],
] as const;

export const slimeLens: LensDefinition = {
  lens: 'slime',
  source: 'slime/observability/metric_utils.py, rollout_metrics.py @ 624b824',
  metrics: [
    ...STATISTICS.map(([how, reduce]): MetricTemplate => ({
      key: `raw_reward/${how}`,
      label: `Reward, ${how}`,
      formula: `${how} of r, null = 0`,
      needs: ['reward'],
      compute: (columns) => overRewards(columns, reduce),
    })),
    {
      key: 'pass@{k}',
      label: 'pass@k',
      formula: 'unbiased, c = #(r = 1), k = 2^i ≤ n',
      needs: ['group', 'reward'],
      parameters: ks,
      compute: (columns, _context, k) => passRate(columns, Number(k)),
    },
    {
      key: 'zero_std/count_{value}',
      label: 'Groups without signal, by reward',
      formula: 'count of groups whose rewards are exactly equal, by reward rounded to one decimal',
      needs: ['group', 'reward'],
      parameters: (columns) => [...zeroStdCounts(columns).counts.keys()].toSorted((a, b) => Number(a) - Number(b)),
      compute: (columns, _context, value) => {
        const { counts, groups, note } = zeroStdCounts(columns);
        return figure(counts.get(value) ?? 0, groups, groups, note);
      },
    },
    ...notInUpload('needs token counts, the raw text or the status of the trainer', [
      ...STATISTICS.map(([how]) => `response_len/${how}`),
      'truncated_ratio',
      'repetition_frac',
      'round_number',
    ]),
  ],
  // `rollout/zero_std/count_1.0`, `rollout/raw_reward`, `passrate/pass@4`, `eval/<set>-pass@4`, `eval/<set>/zero_std/...`, `eval/<set>`;
  // where a grader returns whole numbers, slime prints `count_1`.
  aliases: (name) => {
    if (/^(?:rollout\/)?raw_reward$/.test(name)) return ['raw_reward/mean'];
    const rest = /^(?:rollout\/|passrate\/|eval\/[^/]+?[-/])(.+)$/.exec(name)?.[1];
    const whole = /^zero_std\/count_-?\d+$/.exec(rest ?? name)?.[0];
    if (whole !== undefined) return [`${whole}.0`];
    return rest === undefined ? (/^eval\/[^/]+$/.test(name) ? ['raw_reward/mean'] : []) : [rest];
  },
};
