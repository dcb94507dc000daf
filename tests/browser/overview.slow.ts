import { ENVIRONMENTS, type Raw } from './overview.data.ts';

/**
 * Figures of rollouts by their definitions (docs/reference/metrics.md#canonical-metrics, docs/reference/skyrl.md#metrics), computed
 * slowly and without libs/metrics.
 */

const BROKEN_OFF = new Set(['env_error', 'infra_error', 'timeout', 'aborted', 'cancelled']);
const TRUNCATED = new Set(['max_turns', 'max_tokens', 'context_length']);

export const totalOf = ({ rewards }: Raw): number | null => {
  const known = rewards.filter((reward) => reward !== null);
  return known.length === 0 ? null : known.reduce((a, b) => a + b, 0);
};
const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
const solves = (rollout: Raw) => (rollout.environment === ENVIRONMENTS[0] ? totalOf(rollout)! >= 1 : totalOf(rollout)! > 0);

export function groupsOf(rollouts: readonly Raw[]): Raw[][] {
  const groups = new Map<string, Raw[]>();
  for (const rollout of rollouts) groups.set(rollout.group, [...(groups.get(rollout.group) ?? []), rollout]);
  return [...groups.values()];
}

export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = (p / 100) * (sorted.length - 1);
  const low = Math.floor(rank);
  return sorted[low]! + ((sorted[low + 1] ?? sorted[low]!) - sorted[low]!) * (rank - low);
}

/** The share of all draws of k rollouts in which some, or all, are successes. Tries every subset. */
function draws(outcomes: readonly boolean[], k: number): { some: number; all: number } {
  let [count, some, all] = [0, 0, 0];
  for (let mask = 0; mask < 2 ** outcomes.length; mask += 1) {
    const drawn = outcomes.filter((_outcome, i) => mask & (1 << i));
    if (drawn.length !== k) continue;
    count += 1;
    if (drawn.includes(true)) some += 1;
    if (!drawn.includes(false)) all += 1;
  }
  return { some: some / count, all: all / count };
}

const scoredOf = (rollouts: readonly Raw[]) => rollouts.filter((rollout) => totalOf(rollout) !== null);

/** Every canonical figure of the page except for bootstrap intervals. */
export function canonical(rollouts: readonly Raw[]): Record<string, number> {
  const scored = scoredOf(rollouts);
  const totals = scored.map((rollout) => totalOf(rollout)!);
  const groups = groupsOf(rollouts).map(scoredOf);
  const groupMeans = groups.map((group) => mean(group.map((rollout) => totalOf(rollout)!)));
  const pairs = groups.filter((group) => group.length >= 2);
  const flat = pairs.filter(
    (group) => Math.max(...group.map((one) => totalOf(one)!)) - Math.min(...group.map((one) => totalOf(one)!)) <= 1e-6,
  );
  const figures: Record<string, number> = {
    reward_mean: mean(totals),
    reward_std: Math.sqrt(totals.reduce((sum, total) => sum + (total - mean(totals)) ** 2, 0) / (totals.length - 1)),
    reward_min: Math.min(...totals),
    reward_max: Math.max(...totals),
    success: mean(scored.map((rollout) => Number(solves(rollout)))),
    scored: scored.length,
    effective: scored.filter(({ stop }) => !BROKEN_OFF.has(stop)).length,
    groups: groups.length,
    'avg@n': mean(groupMeans),
    zero_variance: flat.length / pairs.length,
    zero_variance_all_pass: flat.filter((group) => group.every(solves)).length / pairs.length,
    zero_variance_all_fail: flat.filter((group) => !group.every(solves) && totalOf(group[0]!)! <= 0).length / pairs.length,
    zero_variance_equal_other: flat.filter((group) => !group.every(solves) && totalOf(group[0]!)! > 0).length / pairs.length,
    solved_none: groups.filter((group) => !group.some(solves)).length / groups.length,
    solved_all: groups.filter((group) => group.every(solves)).length / groups.length,
    solved_some: groups.filter((group) => group.some(solves) && !group.every(solves)).length / groups.length,
    turns: mean(rollouts.map(({ turns }) => turns)),
    calls: mean(rollouts.map(({ rewards }) => rewards.length)),
    tokens_out: mean(rollouts.map(({ tokens }) => tokens.output)),
    tokens_tool: mean(rollouts.map(({ tokens }) => tokens.tool)),
    truncated: mean(rollouts.map(({ stop }) => Number(TRUNCATED.has(stop)))),
    tool_error: rollouts.reduce((sum, { errors }) => sum + errors, 0) / rollouts.reduce((sum, { rewards }) => sum + rewards.length, 0),
  };
  for (const p of [10, 25, 50, 75, 90]) figures[`reward_p${p}`] = percentile(totals, p);
  for (const k of [1, 2, 4]) {
    const drawn = groups.filter((group) => group.length >= k).map((group) => draws(group.map(solves), k));
    if (drawn.length === 0) continue;
    figures[`pass@${k}`] = mean(drawn.map(({ some }) => some));
    figures[`pass^${k}`] = mean(drawn.map(({ all }) => all));
  }
  return figures;
}

/** Half the width of the 95 % Student-t interval on group means. The quantile uses Simpson's rule and bisection. */
export function halfWidth(rollouts: readonly Raw[]): number {
  const means = groupsOf(rollouts).map((group) => mean(scoredOf(group).map((rollout) => totalOf(rollout)!)));
  const df = means.length - 1;
  const density = (t: number) => (1 + (t * t) / df) ** (-(df + 1) / 2);
  const area = (to: number, parts = 4000) => {
    const step = to / parts;
    let sum = density(0) + density(to);
    for (let i = 1; i < parts; i += 1) sum += density(i * step) * (i % 2 === 1 ? 4 : 2);
    return (sum * step) / 3;
  };
  const half = area(400, 400_000);
  let [low, high] = [0, 20];
  for (let i = 0; i < 60; i += 1) {
    const middle = (low + high) / 2;
    if (area(middle) / half < 0.95) low = middle;
    else high = middle;
  }
  const deviation = Math.sqrt(means.reduce((sum, one) => sum + (one - mean(means)) ** 2, 0) / df);
  return (low * deviation) / Math.sqrt(means.length);
}

/**
 * The figures that SkyRL logs (docs/reference/skyrl.md#metrics): null is 0, and a group passes if the last step of any rollout has a
 * reward.
 */
export function skyrl(rollouts: readonly Raw[]): Record<string, number> {
  const raw = mean(rollouts.map((rollout) => totalOf(rollout) ?? 0));
  const groups = groupsOf(rollouts);
  return {
    'reward/avg_raw_reward': raw,
    'reward/mean_positive_reward': mean(
      rollouts.map(({ rewards }) => rewards.reduce<number>((sum, reward) => sum + Math.max(reward ?? 0, 0), 0)),
    ),
    'reward/avg_pass_at_4': groups.filter((group) => group.some(({ rewards }) => (rewards.at(-1) ?? 0) > 0)).length / groups.length,
    'environment/turns': mean(rollouts.map(({ turns }) => turns)),
    'environment/total_reward': raw,
    'environment/num_rewards': mean(rollouts.map(({ rewards }) => rewards.length)),
  };
}
