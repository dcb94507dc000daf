import { plural } from '../format/number.ts';

/** The service counts up to this number (`pending` of a run). */
const MOST_COUNTED = 10_000;

/** What the figures of a run do not show yet; 0 = all rollouts are read, and figures of steps are computed again. */
export function pendingText(rollouts: number): string {
  if (rollouts === 0) return 'Figures are being updated';
  return `${rollouts >= MOST_COUNTED ? 'At least ' : ''}${plural(rollouts, 'rollout')} not in the figures yet`;
}

export function Pending({ text }: { text: string }) {
  return (
    <span className="whitespace-nowrap text-ink-2" title="The service has stored these rollouts and will update the figures soon.">
      {text}
    </span>
  );
}
