import type { RolloutRow, Verification } from '@palestra/protocol';
import { UNKNOWN } from '../../format/number.ts';

/** The name of a flag without the prefix of its column: `has_image` is `image`, as in queries. */
export const flagName = (flag: string): string => flag.replace(/^has_/, '').replaceAll('_', ' ');

const marks: Record<Verification, readonly [mark: string, className: string, title: string]> = {
  verified: ['✓', 'text-good', 'All calls are in the session ledger.'],
  partial: ['◐', 'text-ink-2', 'Some calls are in the session ledger.'],
  unverified: [UNKNOWN, 'text-ink-3', 'No session of the ledger matches the calls.'],
};

/** Whether the calls of a rollout are in the session ledger. */
export function VerifiedMark({ verified }: { verified: RolloutRow['verified'] }) {
  if (verified === null)
    return (
      <span className="text-ink-3" title="Not checked yet.">
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
