import { figure, type MetricAnswer, unavailable } from '../figure.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { numpyChoice } from '../random.ts';
import { countOf, placesWhere, type RolloutColumns } from '../rollout-columns.ts';
import { max, mean, min, std } from '../summary.ts';
import { groupRewards, groupsOf, joinNotes, notInUpload, nullAsZero, subset, ungroupedNote } from './shared.ts';

/** E[max of N draws with replacement] = Σ v_(i) [(i/n)^N − ((i−1)/n)^N], v ascending. */
export function expectedBest(values: readonly number[], draws: number): number {
  const n = values.length;
  return values.toSorted((a, b) => a - b).reduce((total, value, i) => total + value * (((i + 1) / n) ** draws - (i / n) ** draws), 0);
}

/** By symmetry. */
export function expectedWorst(values: readonly number[], draws: number): number {
  return -expectedBest(
    values.map((value) => -value),
    draws,
  );
}

const BOOTSTRAP_TIMES = 1000;
const BOOTSTRAP_SEED = 42;

/** Uids with the same number of responses share their draws. */
function drawIndices(responses: number, draws: number): Uint32Array {
  return numpyChoice(BOOTSTRAP_SEED, responses, BOOTSTRAP_TIMES * draws);
}

/** What verl prints: 1000 draws with replacement, from NumPy's legacy generator with the same seed for each uid. Depends on the order of values. */
export function bootstrapExtreme(
  values: readonly number[],
  draws: number,
  extreme: 'best' | 'worst',
  indices = drawIndices(values.length, draws),
): { mean: number; std: number } {
  const extremes = Array.from({ length: BOOTSTRAP_TIMES }, (_, time) => {
    let found = values[indices[time * draws]!]!;
    for (let i = time * draws + 1; i < (time + 1) * draws; i += 1) {
      const value = values[indices[i]!]!;
      if (extreme === 'best' ? value > found : value < found) found = value;
    }
    return found;
  });
  return { mean: mean(extremes)!, std: std(extremes, 0)! };
}

/** The Ns of a uid with n responses: 2, 4, ... below n, and n itself. */
export function subsetSizes(n: number): number[] {
  const sizes: number[] = [];
  for (let size = 2; size < n; size *= 2) sizes.push(size);
  return n > 1 ? [...sizes, n] : [];
}

/** Each uid counts up to its own n; the mean is over the uids that have N. A null is 0, as a reward function must return a number. */
function overUids(
  columns: RolloutColumns,
  has: (n: number) => boolean,
  valueOf: (rewards: number[]) => number,
  note?: string,
): MetricAnswer {
  const groups = groupRewards(columns);
  const values = groups.filter((rewards) => has(rewards.length)).map(valueOf);
  return figure(mean(values), values.length, groups.length, joinNotes(note, ungroupedNote(columns), nullAsZero(columns).note));
}

const groupSizes = (columns: RolloutColumns) => [...new Set(groupsOf(columns).map((group) => group.length))].toSorted((a, b) => a - b);
const subsetParameters = (columns: RolloutColumns) =>
  [...new Set(groupSizes(columns).flatMap(subsetSizes))].toSorted((a, b) => a - b).map(String);
const BOOTSTRAP = 'verl prints a 1000-draw estimate (…/bootstrap)';

function extremes(extreme: 'best' | 'worst', exact: (values: number[], draws: number) => number): MetricTemplate[] {
  const needs = ['group', 'reward'] as const;
  const has = (N: string) => (n: number) => subsetSizes(n).includes(Number(N));
  return [
    {
      key: `${extreme}@{N}/mean`,
      label: `${extreme} of N, exact`,
      formula: `E[${extreme} of N draws with replacement], mean over uids`,
      needs,
      parameters: subsetParameters,
      compute: (columns, _context, N) => overUids(columns, has(N), (rewards) => exact(rewards, Number(N)), BOOTSTRAP),
    },
    ...(['mean', 'std'] as const).map((what): MetricTemplate => ({
      key: `${extreme}@{N}/${what}/bootstrap`,
      label: `${extreme} of N, ${what}, as verl prints it`,
      formula: `${what} of 1000 draws with replacement, NumPy seed 42, mean over uids`,
      needs,
      parameters: subsetParameters,
      compute: (columns, _context, N) => {
        const drawn = new Map(groupSizes(columns).map((n) => [n, has(N)(n) ? drawIndices(n, Number(N)) : undefined]));
        const valueOf = (rewards: number[]) => bootstrapExtreme(rewards, Number(N), extreme, drawn.get(rewards.length))[what];
        return overUids(columns, has(N), valueOf, 'depends on the order of rollouts');
      },
    })),
  ];
}

/** verl leaves aborted rollouts, whose response has no tokens, out of the mean: here those without a turn of the model. */
function score(columns: RolloutColumns, reduce: (rewards: number[]) => number | null): MetricAnswer {
  const { assistantTurns } = columns;
  if (assistantTurns.includes(null)) return unavailable('turns of the model are not known');
  const answered = placesWhere(columns, (at) => assistantTurns[at]! > 0);
  const { rewards, note } = nullAsZero(subset(columns, answered));
  return figure(reduce(rewards), answered.length, countOf(columns), note);
}

function turns({ assistantTurns, toolTurns }: RolloutColumns, reduce: (turns: number[]) => number | null): MetricAnswer {
  if (assistantTurns.includes(null) || toolTurns.includes(null)) return unavailable('turns are not known');
  const counts = assistantTurns.map((count, at) => count! + toolTurns[at]! + 1);
  return figure(reduce(counts), counts.length, counts.length);
}

/** DAPO's filter: `len > 1 and np.std == 0`, in NumPy's arithmetic. verl logs no metric of this name. */
function zeroStd(columns: RolloutColumns): MetricAnswer {
  const groups = groupRewards(columns);
  const flat = groups.filter((rewards) => rewards.length > 1 && std(rewards, 0) === 0);
  return figure(flat.length, groups.length, groups.length, joinNotes('a count', ungroupedNote(columns), nullAsZero(columns).note));
}

const REDUCERS = [
  ['mean', mean],
  ['max', max],
  ['min', min],
] as const;

export const verlLens: LensDefinition = {
  lens: 'verl',
  source: 'verl/trainer/ppo/metric_utils.py @ 1dda039b9',
  metrics: [
    ...REDUCERS.map(([how, reduce]): MetricTemplate => ({
      key: `critic/score/${how}`,
      label: `Score, ${how}`,
      formula: `${how} over rollouts with a response`,
      needs: ['reward', 'assistantTurns'],
      compute: (columns) => score(columns, reduce),
    })),
    {
      key: 'mean@{N}',
      label: 'Mean of a uid',
      formula: 'mean over uids with N responses of their mean',
      needs: ['group', 'reward'],
      parameters: (columns) => groupSizes(columns).map(String),
      compute: (columns, _context, N) =>
        overUids(
          columns,
          (n) => n === Number(N),
          (rewards) => mean(rewards)!,
        ),
    },
    {
      key: 'std@{N}',
      label: 'Deviation in a uid',
      formula: 'mean over uids with N > 1 responses of their deviation, ddof 0',
      needs: ['group', 'reward'],
      parameters: (columns) =>
        groupSizes(columns)
          .filter((n) => n > 1)
          .map(String),
      compute: (columns, _context, N) =>
        overUids(
          columns,
          (n) => n > 1 && n === Number(N),
          (rewards) => std(rewards, 0)!,
        ),
    },
    ...extremes('best', expectedBest),
    ...extremes('worst', expectedWorst),
    {
      key: 'filter_groups/zero_std',
      label: 'Groups that DAPO filters',
      formula: 'count of uids with > 1 response and np.std == 0',
      needs: ['group', 'reward'],
      compute: zeroStd,
    },
    ...REDUCERS.map(([how, reduce]): MetricTemplate => ({
      key: `num_turns/${how}`,
      label: `Turns, ${how}`,
      formula: `${how} of user_turns + assistant_turns + 1 (a single turn is 2)`,
      needs: ['assistantTurns', 'toolTurns'],
      compute: (columns) => turns(columns, reduce),
    })),
    ...REDUCERS.map(([how, reduce]): MetricTemplate => ({
      key: `tool_call_counts/${how}`,
      label: `Tool calls, ${how}`,
      formula: `${how} of tool calls`,
      needs: ['calls'],
      compute: ({ calls }) => figure(reduce([...calls]), calls.length, calls.length),
    })),
    ...notInUpload('needs the KL penalty', ['critic/rewards/mean', 'critic/rewards/max', 'critic/rewards/min']),
    ...notInUpload('needs token tensors of the trainer', [
      ...['advantages', 'returns', 'values'].flatMap((what) => ['mean', 'max', 'min'].map((how) => `critic/${what}/${how}`)),
      ...['response_length', 'response_length_non_aborted', 'prompt_length'].flatMap((what) =>
        ['mean', 'max', 'min', 'clip_ratio'].map((how) => `${what}/${how}`),
      ),
      'response/aborted_ratio',
    ]),
    ...notInUpload('needs the parsed answers to vote on', ['maj@{N}/mean', 'maj@{N}/std']),
  ],
  // `val-core/<data source>/<variable>/best@4/mean`
  aliases: (name) => {
    const printed = /^val-(?:core|aux)\/.*\/((?:mean|std)@\d+|(?:best|worst|maj)@\d+\/(?:mean|std))$/.exec(name)?.[1];
    return printed === undefined ? [] : [`${printed}/bootstrap`, printed];
  },
};
