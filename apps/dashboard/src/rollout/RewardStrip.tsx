import type { RolloutOutline } from '@palestra/protocol';
import { useMemo } from 'react';
import { formatReward } from '../format/number.ts';
import { rewardOf, type TranscriptItem } from './transcript.ts';

/** The strip has no pixels for more points. */
const MAX_POINTS = 400;

/** Row and running total of each reward, sampled evenly. */
function totalsOf(outline: RolloutOutline, items: readonly TranscriptItem[]): (readonly [row: number, total: number])[] {
  const all: (readonly [number, number])[] = [];
  items.forEach((item, row) => {
    const reward = rewardOf(outline, item);
    if (reward) all.push([row, (all.at(-1)?.[1] ?? 0) + reward]);
  });
  const every = Math.ceil(all.length / MAX_POINTS);
  return all.filter((_, i) => i % every === 0 || i === all.length - 1);
}

/** Running total of the reward over the rows. The last point is the total. */
export function RewardStrip({
  outline,
  items,
  width = 200,
  height = 26,
}: {
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  width?: number;
  height?: number;
}) {
  const points = useMemo(() => totalsOf(outline, items), [outline, items]);
  if (points.length === 0) return null;
  const values = points.map(([, sum]) => sum);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const x = (row: number) => ((row + 1) / items.length) * width;
  const y = (value: number) => height - 2 - ((value - low) / (high - low || 1)) * (height - 4);
  const path = `M0 ${y(0)}${points.map(([row, sum]) => `H${x(row).toFixed(1)}V${y(sum).toFixed(1)}`).join('')}H${width}`;
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      className="max-w-full flex-none"
      role="img"
      aria-label={`Reward along the rollout, ${points.length} changes, ending at ${formatReward(values.at(-1))}`}
    >
      <path d={`M0 ${y(0)}H${width}`} stroke="var(--line)" />
      <path d={path} fill="none" stroke={values.at(-1)! < 0 ? 'var(--bad)' : 'var(--good)'} strokeWidth="1.5" />
    </svg>
  );
}
