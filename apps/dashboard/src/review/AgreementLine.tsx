import type { ReviewQueue } from '@palestra/protocol';
import { formatReward, plural } from '../format/number.ts';

const EXPLANATION =
  "Krippendorff's alpha for nominal labels: 1 is perfect agreement, 0 is agreement by chance. Items with fewer than two answers do not count.";

/** `Agreement α .71 (.52 to .86) · 40 items`. */
export function AgreementLine({ agreement: { alpha, low, high, items } }: { agreement: ReviewQueue['agreement'] }) {
  if (items === 0) return <p className="text-ink-2">Agreement needs items with answers of two reviewers.</p>;
  if (alpha === null) return <p className="text-ink-2">All answers are equal, so agreement beyond chance is not defined.</p>;
  return (
    <p title={EXPLANATION}>
      Agreement α <span className="num strong">{formatReward(alpha)}</span>{' '}
      {low !== null && high !== null && (
        <span className="num text-ink-2">
          ({formatReward(low)} to {formatReward(high)})
        </span>
      )}{' '}
      <span className="label">{plural(items, 'item')}</span>
    </p>
  );
}
