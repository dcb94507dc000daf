import type { ReviewQueueDetail } from '@palestra/protocol';
import { Link } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { plural } from '../format/number.ts';
import { useKeys } from '../frame/keyboard.ts';
import { AgreementLine } from './AgreementLine.tsx';
import { ProgressBar } from './ProgressBar.tsx';
import type { Review } from './useReview.ts';

/** What is left when the reviewer gets no other item. */
export function EndOfReview({ queue, review }: { queue: ReviewQueueDetail; review: Review }) {
  const { items, complete, answered, skipped } = review;
  const actions = useRef<HTMLDivElement>(null);
  // The keyboard continues at the first action.
  useEffect(() => actions.current?.querySelector<HTMLElement>('button, a')?.focus(), []);
  useKeys({ n: () => skipped > 0 && review.reviewSkipped() });
  const waiting = Math.max(0, items - complete - skipped);
  return (
    <div className="mx-auto flex max-w-[520px] flex-col gap-4 p-6 pt-[12vh]">
      <h2 className="text-[22px] leading-[26px] strong">{complete === items ? 'Review complete' : 'You have no items left'}</h2>
      <div className="flex flex-col gap-2">
        <p>
          {complete} of {plural(items, 'item')} {complete === 1 ? 'is' : 'are'} complete. You answered {answered}
          {skipped > 0 && ` and skipped ${skipped}`}.
        </p>
        <ProgressBar label="Complete items" part={complete} whole={items} />
      </div>
      {waiting > 0 && (
        <p className="text-ink-2">
          {plural(waiting, 'item')} {waiting === 1 ? 'waits' : 'wait'} for other reviewers.
        </p>
      )}
      {queue.overlap > 1 && <AgreementLine agreement={queue.agreement} />}
      <div ref={actions} className="flex flex-wrap gap-2">
        {skipped > 0 && (
          <button type="button" className="button primary" aria-keyshortcuts="n" onClick={review.reviewSkipped}>
            Review {skipped} skipped <kbd>n</kbd>
          </button>
        )}
        <Link to="/reviews" search={{ queue: queue.id }} className={`button ${skipped > 0 ? '' : 'primary'}`}>
          Show results
        </Link>
      </div>
    </div>
  );
}
