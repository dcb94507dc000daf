/** Metrics of one run of the tests, by name. */
export type Rewards = Readonly<Record<string, number>>;

/** What the tests wrote cannot be read as rewards. */
export class RewardError extends Error {}

const MAX_METRICS = 1_000;

/** `reward.txt`: one number, as Python's `float` reads it. Throws `RewardError`. */
export function parseRewardText(text: string): Rewards {
  const trimmed = text.trim();
  if (trimmed === '') throw new RewardError('reward.txt is empty.');
  // Python also reads digits with "_" between them, and no other base.
  const isNumber = /^[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(trimmed);
  const value = isNumber ? Number(trimmed.replaceAll('_', '')) : Number.NaN;
  if (!Number.isFinite(value))
    throw new RewardError(`reward.txt has ${JSON.stringify(trimmed.slice(0, 100))}, which is not a finite number.`);
  return { reward: value };
}

/** `reward.json`: an object of finite numbers. Throws `RewardError`. */
export function parseRewardJson(text: string): Rewards {
  if (text.trim() === '') throw new RewardError('reward.json is empty.');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new RewardError(`reward.json is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RewardError('reward.json is not an object of numbers.');
  const entries = Object.entries(value);
  if (entries.length === 0 || entries.length > MAX_METRICS) throw new RewardError(`reward.json has ${entries.length} metrics.`);
  // Python's `bool` is a number.
  const rewards = entries.map(([name, one]) => [name, typeof one === 'boolean' ? Number(one) : one] as const);
  const wrong = rewards.find(([, one]) => typeof one !== 'number' || !Number.isFinite(one));
  if (wrong !== undefined) throw new RewardError(`reward.json: ${JSON.stringify(wrong[0].slice(0, 100))} is not a finite number.`);
  return Object.fromEntries(rewards) as Rewards;
}

/** The reward of several metrics, as `_primary_reward` of Harbor's `cli/jobs.py`: `reward`, else the only one, else none. */
export function primaryReward(rewards: Rewards): number | null {
  const values = Object.values(rewards);
  return rewards['reward'] ?? (values.length === 1 ? values[0]! : null);
}

/** Of all steps that were graded, as `_aggregate_step_rewards` of Harbor's `trial.py`: a metric that a step lacks counts as 0. */
export function combineSteps(steps: readonly Rewards[], strategy: 'mean' | 'final'): Rewards {
  if (strategy === 'final') return steps.at(-1) ?? {};
  const names = new Set(steps.flatMap((rewards) => Object.keys(rewards)));
  return Object.fromEntries([...names].map((name) => [name, steps.reduce((sum, one) => sum + (one[name] ?? 0), 0) / steps.length]));
}

/** Whether a step reached its `min_reward`; a number is that of the metric `reward`. */
export function reaches(rewards: Rewards, minimum: number | Readonly<Record<string, number>> | null): boolean {
  if (minimum === null) return true;
  const wanted = typeof minimum === 'number' ? { reward: minimum } : minimum;
  return Object.entries(wanted).every(([name, least]) => (rewards[name] ?? -Infinity) >= least);
}
