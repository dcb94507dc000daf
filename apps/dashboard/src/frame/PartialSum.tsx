import type { RolloutRow } from '@palestra/protocol';
import { formatReward } from '../format/number.ts';

/** What an interrupted rollout earned until then: small and hatched, because it is no reward. Nothing for other rollouts. */
export function PartialSum({ rollout }: { rollout: Pick<RolloutRow, 'partial_reward' | 'stop'> }) {
  if (rollout.partial_reward === null) return null;
  const text = formatReward(rollout.partial_reward);
  return (
    <span
      className="hatched rounded-[2px] px-[3px] text-[10px] font-[450] leading-[14px] text-ink-2 tabular-nums"
      title={`Steps earned ${text} until ${rollout.stop ?? 'the rollout was interrupted'}. This is not a reward, and figures leave it out by default.`}
      data-partial
    >
      <span className="rounded-[2px] bg-paper-0 px-[2px]">{text}</span>
      <span className="sr-only"> partial sum, not a reward</span>
    </span>
  );
}
