import type { RolloutRow } from '@palestra/protocol';
import { UNKNOWN } from '../../format/number.ts';

/** `has_image` is a column's word, `image` the query's. */
export const flagWord = (flag: string): string => flag.replace(/^has_/, '').replaceAll('_', ' ');

const marks: Record<'verified' | 'partial' | 'unverified', readonly [mark: string, className: string, title: string]> = {
  verified: ['✓', 'text-good', 'Its calls are those that our session ledger recorded.'],
  partial: ['◐', 'text-ink-2', 'Some of its calls are in our session ledger.'],
  unverified: [UNKNOWN, 'text-ink-3', 'No session of our ledger fits its calls.'],
};

/** Whether the calls of a rollout are those that we saw ourselves. */
export function VerifiedMark({ verified }: { verified: RolloutRow['verified'] }) {
  if (verified === null)
    return (
      <span className="text-ink-3" title="Not looked at yet.">
        …
      </span>
    );
  const [mark, className, title] = marks[verified];
  return (
    <span className={className} title={title}>
      <span aria-hidden="true">{mark}</span>
      <span className="sr-only">{verified}</span>
    </span>
  );
}
