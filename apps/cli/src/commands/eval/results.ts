import {
  avgAtN,
  avgInterval,
  clusteredProportion,
  columnsOf,
  groupStats,
  inferSuccessRule,
  type Interval,
  passAtK,
  passAtKInterval,
  passSizes,
  type RolloutColumns,
} from '@palestra/metrics';
import type { StopReason } from '@palestra/protocol';
import type { EpisodeResult } from './episode.ts';
import type { EvalMetric } from './metrics.ts';

/** A figure with its 95 % interval; null without anything to compute it from. */
export interface Figure {
  value: number | null;
  low: number | null;
  high: number | null;
}

export interface Figures {
  /** Tasks with a scored episode. */
  tasks: number;
  episodes: number;
  /** Episodes with a reward: only these are in the figures. */
  scored: number;
  /** Mean over tasks of the mean of their episodes. Its interval is Student's t over the means of tasks. */
  reward_mean: Figure;
  /** Share of the scored episodes that succeed, with Wilson's interval for samples that are clustered by task. */
  success: Figure;
}

export interface Results extends Figures {
  /** pass@k by k, over the tasks with k scored episodes; intervals by a bootstrap of tasks. */
  pass: ({ k: number } & Figure)[];
  /** Episodes by the class of what failed. They have no score. */
  failures: { environment: number; infrastructure: number };
  stops: Partial<Record<StopReason, number>>;
  turns: number;
  calls: number;
  refused_calls: number;
  /** Sums over the episodes whose model reported them; null: none did. */
  tokens: { prompt: number; output: number } | null;
  /** In the currency of the prices; null without prices or tokens. */
  cost: number | null;
  /** The same figures by the member `level` of the tasks, if they have several. */
  levels: ({ level: string } & Figures)[];
}

export interface Prices {
  /** Of a million prompt tokens. */
  input: number;
  /** Of a million generated tokens. */
  output: number;
}

/** `levelOf`: the level of a task, or null. `samples`: episodes per task. */
export function resultsOf(
  episodes: readonly EpisodeResult[],
  { samples, levelOf, prices }: { samples: number; levelOf: (task: number) => string | null; prices: Prices | null },
): Results {
  const columns = toColumns(episodes);
  const success = inferSuccessRule(episodes.map(({ reward }) => reward));
  const tokens = sumTokens(episodes);
  const levels = [...new Set(episodes.map(({ task }) => levelOf(task)))].filter((level) => level !== null);
  return {
    ...figuresOf(columns, success),
    pass: passSizes(samples, samples).map((k) => ({
      k,
      ...figureOf(passAtK(columns, k, { success }).value, passAtKInterval(columns, k, { success })),
    })),
    failures: {
      environment: episodes.filter(({ failure }) => failure === 'environment').length,
      infrastructure: episodes.filter(({ failure }) => failure === 'infrastructure').length,
    },
    stops: countBy(episodes.map(({ stop }) => stop)),
    turns: sum(episodes.map(({ turns }) => turns)),
    calls: sum(episodes.map(({ calls }) => calls)),
    refused_calls: sum(episodes.map(({ refused }) => refused)),
    tokens,
    cost: tokens && prices && (tokens.prompt * prices.input + tokens.output * prices.output) / 1e6,
    levels:
      levels.length < 2
        ? []
        : levels
            .toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
            .map((level) => ({ level, ...figuresOf(toColumns(episodes.filter(({ task }) => levelOf(task) === level)), success) })),
  };
}

/** The figure that a condition names. */
export function metricOf(results: Results, metric: EvalMetric): Figure | undefined {
  if (metric === 'reward_mean' || metric === 'success') return results[metric];
  if (metric === 'failed') return { value: results.episodes === 0 ? null : 1 - results.scored / results.episodes, low: null, high: null };
  return results.pass.find(({ k }) => metric === `pass_at_${k}`);
}

function figuresOf(columns: RolloutColumns, success: ReturnType<typeof inferSuccessRule>): Figures {
  const groups = [...groupStats(columns, { success }).values()];
  const solved = clusteredProportion(groups.map(({ scored, c }) => ({ scored, successes: c })));
  return {
    tasks: groups.filter(({ scored }) => scored > 0).length,
    episodes: columns.reward.length,
    scored: sum(groups.map(({ scored }) => scored)),
    reward_mean: figureOf(avgAtN(columns).value, avgInterval(columns)),
    success: figureOf(solved?.rate ?? null, solved),
  };
}

const figureOf = (value: number | null, interval: Interval | null): Figure => ({
  value,
  low: interval?.low ?? null,
  high: interval?.high ?? null,
});

/** A task is a group. */
const toColumns = (episodes: readonly EpisodeResult[]): RolloutColumns =>
  columnsOf(
    episodes.map(({ task, reward, stop, failure, turns, calls, refused, tokens }) => ({
      group: String(task),
      reward,
      rewardPositive: null,
      lastReward: null,
      rewardSteps: 0,
      stop,
      turns,
      assistantTurns: null,
      toolTurns: null,
      calls,
      callErrors: refused,
      tokensOut: tokens?.output ?? null,
      tokensTool: null,
      failure,
      environment: null,
    })),
  );

function sumTokens(episodes: readonly EpisodeResult[]): Results['tokens'] {
  const known = episodes.flatMap(({ tokens }) => tokens ?? []);
  if (known.length === 0) return null;
  return { prompt: sum(known.map(({ prompt }) => prompt)), output: sum(known.map(({ output }) => output)) };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function countBy<Key extends string>(keys: readonly Key[]): Partial<Record<Key, number>> {
  const counts: Partial<Record<Key, number>> = {};
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1;
  return counts;
}
