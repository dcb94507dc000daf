import { Link } from '@tanstack/react-router';
import type { RolloutRow } from '@palestra/protocol';
import { useMemo } from 'react';
import { formatReward, plural } from '../format/number.ts';
import { RewardDot } from '../frame/Reward.tsx';
import { ChartPanel } from './Chart.tsx';
import { groupByTask, successThreshold } from './interval.ts';
import { taskLabel } from './task.ts';

const shownGroups = 60;
const shownSamples = 16;

function meanOf(rows: RolloutRow[]): number | null {
  const rewards = rows.map((row) => row.reward).filter((reward) => reward !== null);
  return rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
}

/** Each task with one dot a sample: which tasks still carry signal, and a way into each rollout. */
export function TaskBoard({ rows }: { rows: RolloutRow[] }) {
  const { solved } = useMemo(() => successThreshold(rows), [rows]);
  const groups = useMemo(() => [...groupByTask(rows).values()], [rows]);
  const mixed = groups.filter((group) => new Set(group.map((row) => row.reward).filter((reward) => reward !== null)).size > 1).length;
  return (
    <ChartPanel
      title="Which tasks carry signal?"
      explain="One dot a sample: filled solved, half some reward, hollow none, hatched not scored. Tasks whose samples all have the same reward teach a group-relative trainer nothing."
      note={`${mixed} of ${plural(groups.length, 'task')} mixed`}
    >
      <ul
        className="grid h-full content-start gap-x-5 overflow-auto"
        style={{ gridTemplateColumns: 'repeat(auto-fill, minmax(148px, 1fr))' }}
      >
        {groups.slice(0, shownGroups).map((group) => (
          <li key={group[0]!.id} className="grid h-[22px] grid-cols-[minmax(0,1fr)_auto_30px] items-center gap-2">
            <span className="truncate text-ink-2" title={taskLabel(group[0]!)}>
              {taskLabel(group[0]!)}
            </span>
            <span className="flex gap-[3px]">
              {group
                .slice(0, shownSamples)
                .toReversed()
                .map((row) => (
                  <Link
                    key={row.id}
                    to="/rollout/$id"
                    params={{ id: row.id }}
                    className="grid place-items-center"
                    preload={false}
                    tabIndex={-1}
                    title={`${taskLabel(row)}, reward ${formatReward(row.reward)}`}
                  >
                    <RewardDot reward={row.reward} solved={solved} />
                  </Link>
                ))}
              {group.length > shownSamples && <span className="label">+{group.length - shownSamples}</span>}
            </span>
            <span className="num text-ink-3">{formatReward(meanOf(group))}</span>
          </li>
        ))}
        {groups.length > shownGroups && <li className="label h-[22px] content-center">and {groups.length - shownGroups} more</li>}
      </ul>
    </ChartPanel>
  );
}
