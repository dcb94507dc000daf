import type { ReviewQueue } from '@palestra/protocol';
import { formatReward, plural, UNKNOWN } from '../format/number.ts';

type Agreement = ReviewQueue['agreement'];

const EXPLANATION =
  "Krippendorff's alpha for nominal labels: 1 is perfect agreement, 0 is agreement by chance. Items with fewer than two answers do not count.";

/** Why there is no alpha; null if there is one. */
export function whyNoAgreement({ alpha, items }: Agreement): string | null {
  if (items === 0) return 'no item has the answers of two reviewers';
  return alpha === null ? 'all answers are equal, so that chance gives the same' : null;
}

/** `Agreement α .71 (.52 to .86) · 40 items`, or `Agreement α – · no item has the answers of two reviewers`. */
export function AgreementLine({ agreement }: { agreement: Agreement }) {
  const { alpha, low, high, items } = agreement;
  const reason = whyNoAgreement(agreement);
  return (
    <p title={EXPLANATION}>
      Agreement α <span className="num strong">{alpha === null ? UNKNOWN : formatReward(alpha)}</span>{' '}
      {low !== null && high !== null && (
        <span className="num text-ink-2">
          ({formatReward(low)} to {formatReward(high)})
        </span>
      )}{' '}
      <span className={reason === null ? 'label' : 'text-ink-2'}>· {reason ?? plural(items, 'item')}</span>
    </p>
  );
}
