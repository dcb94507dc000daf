import { formatReward } from '../format/number.ts';

/** The second channel of a reward: filled when solved, half when positive, hollow when not, hatched when unscored. */
export function RewardDot({ reward, solved }: { reward: number | null; solved: (reward: number) => boolean }) {
  const kind = reward === null ? 'none' : solved(reward) ? 'full' : reward > 0 ? 'part' : 'empty';
  return <span className={`pip ${kind}`} aria-hidden="true" />;
}

/** Number, bar and dot of a total reward; `scale` is the reward that fills the bar. */
export function RewardCell({ reward, solved, scale }: { reward: number | null; solved: (reward: number) => boolean; scale: number }) {
  const share = reward === null ? 0 : Math.min(1, Math.max(0, reward / scale));
  return (
    <span className="grid grid-cols-[44px_minmax(20px,1fr)_9px] items-center gap-2">
      <span className={`num ${reward === null ? 'text-ink-3' : solved(reward) ? 'text-good' : reward > 0 ? '' : 'text-bad'}`}>
        {formatReward(reward)}
        {reward === null && <span className="sr-only"> not scored</span>}
      </span>
      <span className="h-[4px] rounded-[2px] bg-paper-2" aria-hidden="true">
        <span
          className={`block h-full rounded-[2px] ${reward !== null && solved(reward) ? 'bg-good' : 'bg-unscored'}`}
          style={{ width: `${share * 100}%` }}
        />
      </span>
      <RewardDot reward={reward} solved={solved} />
    </span>
  );
}
