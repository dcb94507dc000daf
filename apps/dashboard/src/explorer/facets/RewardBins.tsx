import type { RunFacets } from '@palestra/protocol';
import { formatCount, formatReward } from '../../format/number.ts';
import type { Bounds } from '../query/query-edit.ts';

type Bin = RunFacets['reward']['bins'][number];
const HEIGHT_PX = 36;

const isIn = ({ from, below }: Bin, bounds: Bounds): boolean =>
  (bounds.from === undefined || from >= bounds.from) &&
  (bounds.below === undefined || below <= bounds.below) &&
  (bounds.to === undefined || below <= bounds.to);

/** A histogram of rewards. A click on a bar sets the query to its bin, Shift+click extends the range, and a second click clears it. */
export function RewardBins({
  bins,
  more,
  bounds,
  onBounds,
}: {
  bins: readonly Bin[];
  more: boolean;
  bounds: Bounds;
  onBounds: (bounds: Bounds) => void;
}) {
  const most = Math.max(1, ...bins.map(({ count }) => count));
  const bounded = Object.keys(bounds).length > 0;
  const choose = ({ from, below }: Bin, extend: boolean) => {
    if (bounds.from === from && bounds.below === below) onBounds({});
    else if (extend && bounded) onBounds({ from: Math.min(from, bounds.from ?? from), below: Math.max(below, bounds.below ?? below) });
    else onBounds({ from, below });
  };
  return (
    <div role="group" aria-label="Rewards" className="mb-1 flex items-end gap-px border-b border-line" style={{ height: HEIGHT_PX }}>
      {bins.map((bin) => {
        const chosen = bounded && isIn(bin, bounds);
        const name = `${formatReward(bin.from)} to below ${formatReward(bin.below)}: ${formatCount(bin.count)}${more ? '+' : ''} rollouts`;
        return (
          <button
            key={bin.from}
            type="button"
            aria-pressed={chosen}
            aria-label={`Reward ${name}`}
            title={name}
            className="group flex h-full min-w-0 flex-1 items-end hover:bg-paper-2"
            onClick={(event) => choose(bin, event.shiftKey)}
          >
            <span
              className={`block w-full rounded-t-[1px] ${chosen ? 'bg-accent' : bounded ? 'bg-line-strong' : 'bg-unscored group-hover:bg-accent'}`}
              style={{ height: bin.count === 0 ? 0 : Math.max(2, (bin.count / most) * (HEIGHT_PX - 2)) }}
            />
          </button>
        );
      })}
    </div>
  );
}
