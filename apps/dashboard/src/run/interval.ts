import type { RolloutRow } from '@palestra/protocol';

/** Two-sided 95 % quantiles of Student's t for 1…30 degrees of freedom; 1.96 above is within 2 %. */
const t975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086,
  2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** Rollouts of the same task (and step) are samples of one group. */
export function groupByTask(rows: RolloutRow[]): Map<string, RolloutRow[]> {
  const groups = new Map<string, RolloutRow[]>();
  for (const row of rows) {
    const key = row.task_index === null ? row.id : [row.environment, row.variant, row.split, row.task_index, row.step].join('\u0000');
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}

/**
 * Half width of the 95 % interval of the mean reward: Student's t on group means (dashboard.md 3.1), because samples of one
 * task are not independent. null with fewer than two scored groups.
 */
export function rewardInterval(rows: RolloutRow[]): number | null {
  const means: number[] = [];
  for (const group of groupByTask(rows).values()) {
    const rewards = group.map((row) => row.reward).filter((reward) => reward !== null);
    if (rewards.length > 0) means.push(rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length);
  }
  const count = means.length;
  if (count < 2) return null;
  const mean = means.reduce((sum, value) => sum + value, 0) / count;
  const variance = means.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  return (t975[count - 2] ?? 1.96) * Math.sqrt(variance / count);
}

/** The reward from which a rollout counts as solved: 1 if all totals lie in [0, 1], else anything above 0 (dashboard.md 14.3). */
export function successThreshold(rows: RolloutRow[]): { solved: (reward: number) => boolean; text: string } {
  const unit = rows.every((row) => row.reward === null || (row.reward >= 0 && row.reward <= 1));
  // Summed step rewards of 1 arrive as 0.9999999999999999.
  return unit ? { solved: (reward) => reward >= 1 - 1e-6, text: 'reward ≥ 1' } : { solved: (reward) => reward > 0, text: 'reward > 0' };
}
