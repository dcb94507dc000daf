import type { Lens } from '@palestra/protocol';
import type { Kpi } from '../data/run-queries.ts';

/** The first charts of a trainer's dashboard. Other lenses chart their first known figures. */
const first: Partial<Record<Lens, readonly string[]>> = {
  skyrl: [
    'reward/avg_raw_reward',
    'reward/avg_pass_at_{n}',
    'reward/mean_positive_reward',
    'environment/turns',
    'environment/total_reward',
    'environment/num_rewards',
  ],
};
const MAX_CHARTS = 8;

export const lensMetrics = (lens: Lens, kpis: readonly Kpi[]): string[] => [
  ...(first[lens] ??
    kpis
      .filter(({ value }) => value !== null)
      .map(({ key }) => key)
      .slice(0, MAX_CHARTS)),
];
