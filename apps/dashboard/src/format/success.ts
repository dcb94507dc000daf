import type { RolloutRow } from '@palestra/protocol';

/** The reward from which a rollout counts as solved: 1 if all totals lie in [0, 1], else anything above 0 (dashboard.md 14.3). */
export function successThreshold(rows: readonly Pick<RolloutRow, 'reward'>[]): { solved: (reward: number) => boolean; text: string } {
  const unit = rows.every((row) => row.reward === null || (row.reward >= 0 && row.reward <= 1));
  // Summed step rewards of 1 arrive as 0.9999999999999999.
  return unit ? { solved: (reward) => reward >= 1 - 1e-6, text: 'reward ≥ 1' } : { solved: (reward) => reward > 0, text: 'reward > 0' };
}
